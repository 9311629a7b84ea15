// Marks regions whose content is cut off at a side, so that it can be seen that there is more to scroll to: on a phone
// scrollbars are hidden until somebody scrolls.

export function markOverflow(regions) {
  for (const region of regions) {
    const mark = () => {
      const left = region.scrollLeft > 1;
      const right = region.scrollLeft + region.clientWidth < region.scrollWidth - 1;
      const cut = [left && "left", right && "right"].filter(Boolean).join(" ");
      if ((region.dataset.cut || "") !== cut) region.dataset.cut = cut;
    };
    region.addEventListener("scroll", mark, { passive: true });
    new ResizeObserver(mark).observe(region);
    new MutationObserver(mark).observe(region, { childList: true, subtree: true });
    mark();
  }
}
