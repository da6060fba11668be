"use strict";

/** Shows openapi.json. Text only ever becomes text: nothing of the document is taken for markup. */

/** Returns an element with attributes and children; a child is a node or text. */
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

const code = (text) => element("code", {}, text);
const nameOf = (reference) => reference.split("/").at(-1);

/** Returns the type of a schema in words and links: `string`, `array of Plan`, `integer or null`. */
function typeOf(schema) {
  if (schema.$ref) return [element("a", { href: `#${nameOf(schema.$ref)}` }, nameOf(schema.$ref))];
  if (schema.anyOf) return schema.anyOf.flatMap((one, index) => [...(index ? [" or "] : []), ...typeOf(one)]);
  if (schema.enum) return [schema.enum.join(", ")];
  if (schema.contentMediaType) return ["file"];
  if (schema.items) return ["array of ", ...typeOf(schema.items)];
  return [[schema.type ?? "any"].flat().join(" or ")];
}

/** Returns the bounds that a caller may meet, in words. */
function boundsOf({ minimum, maximum, minLength, maxLength, maxItems, default: usual }) {
  return [
    minimum >= 0 ? `${minimum} to ${maximum}` : undefined,
    minLength ? `${minLength} to ${maxLength} characters` : undefined,
    maxItems ? `at most ${maxItems}` : undefined,
    usual !== undefined ? `default ${usual}` : undefined,
  ].filter(Boolean).join(", ");
}

/** Returns a table of rows: name, type, meaning. */
function table(rows) {
  const lines = rows.map(({ name, schema, required, description }) => {
    const bounds = boundsOf(schema);
    const meaning = [description ?? schema.description ?? "", bounds ? ` (${bounds})` : ""].join("");
    return element("tr", {}, element("td", {}, code(name), required ? "" : element("span", { class: "quiet" }, " optional")),
      element("td", {}, ...typeOf(schema)), element("td", {}, meaning));
  });
  return element("table", {}, ...lines);
}

function members(schema) {
  const required = new Set(schema.required);
  return table(Object.entries(schema.properties ?? {})
    .map(([name, member]) => ({ name, schema: member, required: required.has(name) })));
}

function sample({ label, source }) {
  const button = element("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(source);
    button.textContent = "Copied";
  });
  return [element("h3", {}, label, button), element("pre", {}, code(source))];
}

function answers(responses) {
  const rows = Object.entries(responses).map(([status, response]) => {
    const bodies = Object.entries(response.content ?? {}).map(([type, { schema }]) => {
      const reference = schema?.$ref ?? schema?.allOf?.[0].$ref;
      return reference ? element("a", { href: `#${nameOf(reference)}` }, nameOf(reference)) : type;
    });
    const listed = bodies.flatMap((body, index) => (index ? [", ", body] : [body]));
    return element("tr", {}, element("td", {}, code(status)), element("td", {}, ...listed),
      element("td", {}, response.description));
  });
  return element("table", {}, ...rows);
}

function section(title, content) {
  return content ? [element("h3", {}, title), content] : [];
}

function endpoint(path, method, operation) {
  const form = operation.requestBody?.content["multipart/form-data"].schema;
  const parameters = operation.parameters.length
    ? table(operation.parameters.map((parameter) => ({ ...parameter, name: `${parameter.name}` })))
    : undefined;
  return element("section", {},
    element("h2", { id: operation.operationId }, element("span", { class: "method" }, method.toUpperCase()), code(path)),
    element("p", {}, `${operation.summary}.`,
      element("span", { class: "quiet" }, operation.security.length ? " Needs the header X-API-Key." : " Needs no key.")),
    ...section("Form", form && members(form)),
    ...section("Parameters", parameters),
    ...operation["x-codeSamples"].flatMap(sample),
    ...section("Answers", answers(operation.responses)));
}

function record([name, schema]) {
  return element("section", {}, element("h2", { id: name }, code(name)), element("p", {}, schema.description ?? ""),
    schema.enum ? element("p", {}, schema.enum.join(", ")) : members(schema));
}

function show(api) {
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [path, method, operation]));
  document.getElementById("contents").append(...operations.map(([path, method, { operationId }]) =>
    element("a", { href: `#${operationId}` }, element("span", { class: "method" }, method.toUpperCase()), path)));
  document.getElementById("interface").replaceChildren(
    element("h1", {}, api.info.title),
    element("p", {}, api.info.description),
    element("p", { class: "quiet" }, "The samples take the service's address from URL and the key from KEY: ",
      code(`export URL=${new URL(api.servers[0].url, document.baseURI).href.replace(/\/$/, "")} KEY=…`),
      ". All of this page is in ", element("a", { href: "openapi.json" }, "openapi.json"), "."),
    ...operations.map((operation) => endpoint(...operation)),
    element("h1", {}, "Records"),
    ...Object.entries(api.components.schemas).map(record));
}

async function main() {
  try {
    show(await (await fetch("openapi.json")).json());
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch (error) {
    document.getElementById("interface").replaceChildren(`The description could not be shown: ${error.message}`);
  }
}

main();
