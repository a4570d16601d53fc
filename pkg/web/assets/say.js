// What scripts say, in the language of the page: say("{1} of {2}", 3, 7).
(() => {
  "use strict";

  const messages = JSON.parse(document.getElementById("messages")?.textContent ?? "{}");
  window.say = (message, ...values) => (messages[message] ?? message).replace(/\{(\d)\}/g, (_, n) => values[n - 1]);
})();
