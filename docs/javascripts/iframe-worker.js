// The search of this site runs in a worker. A browser starts no worker for a page that was opened from disk
// (file://), so there the same script runs in a hidden frame. On a web server this file does nothing.
"use strict";

if (location.protocol === "file:") {
  // The name is how the script of the search knows that it runs in a frame.
  window.IFrameWorker = class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><title>Search</title>");
      inside.document.close();
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      this.ready = new Promise((resolve) => { script.onload = resolve; });
      script.onerror = () => this.dispatchEvent(new ErrorEvent("error", { message: `${url} cannot be loaded` }));
      inside.document.body.append(script);
      this.inside = inside;
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
