/** The JSON API of this server; nothing else is ever asked. */
import type { ErrorBody } from "./types";

const BASE = "api/v1/";

/** An error object of the contract, or what stands in its place when the server can't be reached. */
export class ApiError extends Error {
  constructor(readonly body: ErrorBody, readonly status: number) {
    super(body.message);
  }
}

async function read<T>(response: Response): Promise<T> {
  let answer: unknown;
  try {
    answer = await response.json();
  } catch {
    throw new ApiError({ code: "no_json", message: `HTTP ${response.status}`, hint: null, field: null }, response.status);
  }
  const error = (answer as { error?: ErrorBody }).error;
  if (error) throw new ApiError(error, response.status);
  return answer as T;
}

async function send<T>(path: string, init: RequestInit): Promise<T> {
  try {
    return await read<T>(await fetch(BASE + path, { ...init, credentials: "same-origin" }));
  } catch (problem) {
    if (problem instanceof ApiError || (problem as Error).name === "AbortError") throw problem;
    throw new ApiError({ code: "unreachable", message: String((problem as Error).message), hint: null, field: null }, 0);
  }
}

/** Ask with a JSON body. */
export function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return send<T>(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
}

/** The same answer as Markdown, written by the library. */
export async function markdown(path: string, body: Record<string, unknown>): Promise<string> {
  const response = await fetch(BASE + path, {
    method: "POST",
    credentials: "same-origin",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...body, format: "markdown" }),
  });
  if (!response.ok) await read(response);
  return response.text();
}

/** Ask for a listing. */
export function get<T>(path: string, query: Record<string, string | number> = {}, signal?: AbortSignal): Promise<T> {
  const parts = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]));
  const text = parts.toString();
  return send<T>(text ? `${path}?${text}` : path, { signal: signal ?? null });
}

/** Send raw bytes. */
export function put<T>(path: string, bytes: Blob, headers: Record<string, string>, signal?: AbortSignal): Promise<T> {
  return send<T>(path, { method: "POST", headers, body: bytes, signal: signal ?? null });
}
