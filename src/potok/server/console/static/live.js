// The stream of snapshots, and what happens when it breaks.

const SILENCE_MS = 8_000; // a server that is there sends several events a second
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5_000;

export function listen(url, { onSnapshot, onLost, onBack }) {
  let source = null;
  let lost = false;
  let tries = 0;
  let watchdog = 0;
  let retry = 0;

  function open() {
    clearTimeout(retry);
    source = new EventSource(url);
    source.onmessage = (event) => {
      arm();
      tries = 0;
      if (lost) {
        lost = false;
        onBack();
      }
      onSnapshot(JSON.parse(event.data));
    };
    source.onerror = fail;
    arm();
  }

  function arm() {
    clearTimeout(watchdog);
    watchdog = setTimeout(fail, SILENCE_MS);
  }

  // EventSource would retry by itself, but says neither when nor how often, and gives up on some answers.
  function fail() {
    clearTimeout(watchdog);
    clearTimeout(retry);
    source.close();
    tries += 1;
    const wait = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (tries - 1));
    if (!lost) lost = true;
    onLost(tries);
    retry = setTimeout(open, wait);
  }

  addEventListener("online", () => lost && open());
  addEventListener("pagehide", () => source.close());
  open();
}
