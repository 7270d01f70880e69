import type { IncomingMessage } from 'node:http';
import {
  MalformedBodyError,
  parseJsonBody,
  readRawBody,
  receiveByDeadline,
} from '@slipway/common/requests/json-body.js';
import type { SentEvent } from './event-source.js';

const MAX_BYTES = 1_048_576;
const DEADLINE_MS = 20_000;
/** Pushes name every file of every commit. */
const MAX_VALUES = 50_000;

/** The bytes that were signed. @throws MalformedBodyError beyond a mebibyte, before any of it is parsed */
export async function readEventBody(request: IncomingMessage): Promise<Buffer> {
  return receiveByDeadline(request, DEADLINE_MS, () => readRawBody(request, MAX_BYTES));
}

/** JSON, or a form with JSON in `payload`, which GitHub sends by default. @throws MalformedBodyError for others */
export function parseEvent({ header, body }: SentEvent): unknown {
  const isForm = header('content-type').startsWith('application/x-www-form-urlencoded');
  const text = body.toString('utf8');
  const payload = parseJsonBody(isForm ? (new URLSearchParams(text).get('payload') ?? '') : text, MAX_VALUES);
  if (payload === null) {
    throw new MalformedBodyError('syntax');
  }
  return payload;
}
