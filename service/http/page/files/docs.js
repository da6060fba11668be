/** Shows openapi.json with Swagger UI, which can also send requests. Nothing is loaded from, or sent to, elsewhere. */

const place = document.getElementById("interface");

if (window.SwaggerUIBundle) {
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
    syntaxHighlight: { theme: "idea" },
  });
} else {
  place.textContent =
    "Swagger UI is missing on this server: its operator can add it with “./just page”. The description of the interface is in openapi.json.";
}
