/** Shows openapi.json with Swagger UI, which can also send requests. Nothing is loaded from, or sent to, elsewhere. */

/** Fields of a form begin empty, or with their default: what Swagger UI makes up for them would be sent. */
const EmptyFields = (toolbox) => {
  const made = toolbox.getSystem().fn.getSampleSchema;
  return { fn: { getSampleSchema: (schema, mediaType, ...others) => (mediaType ? made(schema, mediaType, ...others) : initial(schema)) } };
};

function initial(schema) {
  const plain = schema?.toJS ? schema.toJS() : schema;
  return plain?.default ?? (plain?.type === "array" ? [] : "");
}

/** Swagger UI is dark where this class is. */
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();

const place = document.getElementById("interface");

if (window.SwaggerUIBundle) {
  keepAccessible(place);
  window.SwaggerUIBundle({
    domNode: place,
    url: "openapi.json",
    validatorUrl: null,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    persistAuthorization: false,
    tryItOutEnabled: true,
    plugins: [EmptyFields, Accessible],
    syntaxHighlight: { theme: "agate" },
  });
} else {
  place.textContent =
    "Swagger UI is missing on this server: its operator can add it with “./just page”. The description of the interface is in openapi.json.";
}
