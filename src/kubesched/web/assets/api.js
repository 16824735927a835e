/** API client; responses are JSON, failures are errors with the server's one-line message. */

import { place, written } from "./route.js";

/**
 * @param {string[]} path parts below api/
 * @param {Record<string, string | number | undefined>} [query]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export function get(path, query = {}, signal) {
  return answer(`api/${written(path, query)}`, { signal });
}

/** @param {object} question @param {AbortSignal} [signal] @returns {Promise<any>} */
export function whatIf(question, signal) {
  const at = place();
  const body = JSON.stringify(at === undefined ? question : { ...question, at: Number(at) });
  return answer("api/what-if", { method: "POST", body, signal, headers: { "Content-Type": "application/json" } });
}

async function answer(url, options) {
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  if (response.ok) return response.json();
  throw new Error(await reason(response));
}

async function reason(response) {
  if (response.status === 401) return "Not authorised: open the address with the token that the command printed.";
  try {
    return (await response.json()).error || `HTTP ${response.status}`;
  } catch {
    return `The server answered with HTTP ${response.status}.`;
  }
}

/** One request at a time: a newer one cancels an older one. */
export class Latest {
  #controller = null;

  /** @template T @param {(signal: AbortSignal) => Promise<T>} ask @returns {Promise<T | undefined>} undefined if cancelled */
  async run(ask) {
    this.#controller?.abort();
    const mine = (this.#controller = new AbortController());
    try {
      const found = await ask(mine.signal);
      return mine.signal.aborted ? undefined : found;
    } catch (error) {
      if (mine.signal.aborted) return undefined;
      throw error;
    }
  }

  cancel() {
    this.#controller?.abort();
  }
}
