/** Gives what Swagger UI leaves unnamed a name for screen readers, and the keyboard a way into what scrolls. */

const row = (node) => node.closest("tr").dataset;
const MENDED = {
  ".close-modal": (node) => (node.ariaLabel = "Close"),
  ":is([data-param-name], [data-property-name]) :is(select, input:not([type=checkbox]), textarea)": (node) =>
    (node.ariaLabel = row(node).paramName ?? row(node).propertyName),
  pre: (node) => (node.tabIndex = 0),
};

/** Keeps all of it mended in `place`, which Swagger UI fills anew whenever something is opened. */
function keepAccessible(place) {
  const mend = () => {
    for (const [selector, act] of Object.entries(MENDED)) place.querySelectorAll(selector).forEach(act);
  };
  new MutationObserver(mend).observe(place, { childList: true, subtree: true });
}

/** A path is inside the button that opens its operation, where no link may be; there is one server, so none to choose. */
const Accessible = ({ React }) => ({
  components: {
    DeepLink: ({ text }) => React.createElement("span", {}, text),
    ServersContainer: () => null,
  },
});
