// The server's JSON interface (docs/api.md). Every failure becomes an Error with a sentence for people.

async function answer(response) {
  let body = null;
  try {
    body = await response.json();
  } catch {
    throw new Error(`The server gave no readable answer (status ${response.status}).`);
  }
  if (!response.ok) throw new Error(body.error || `The server answered with status ${response.status}.`);
  return body;
}

async function call(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is “lexinvariant serve” still running?");
  }
  return answer(response);
}

export const get = (path) => call(path, {});
export const post = (path, body, signal) =>
  call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
