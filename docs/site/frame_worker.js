// A browser refuses web workers in pages that are opened as files, and the search runs in a worker.
// Such a page loads the script of the worker into a hidden frame instead. Messages are copied, and delivered later.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      this.scope = this.frame.contentWindow;
      this.scope.postMessage = (data) => {
        const event = new MessageEvent("message", { data: structuredClone(data) });
        setTimeout(() => {
          if (this.onmessage) this.onmessage(event);
          this.dispatchEvent(event);
        });
      };
      const script = this.frame.contentDocument.createElement("script");
      script.src = url;
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      this.frame.contentDocument.documentElement.append(script);
    }
    postMessage(data) {
      const event = new this.scope.MessageEvent("message", { data: structuredClone(data) });
      this.loaded.then(() => setTimeout(() => this.scope.dispatchEvent(event)));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
