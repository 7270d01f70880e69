import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Denial } from './protocol.js';
import { shownTarget, type Target } from './target.js';

export const EGRESS_HEADER = 'x-slipway-egress';

/** A request that the proxy answers itself. */
export class RefusedError extends Error {
  constructor(
    /** Null where nothing was denied: the host or the service cannot be reached, or the caller is unknown. */
    readonly denial: Denial | null,
    readonly status: number,
    message: string,
    readonly rule: string | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'RefusedError';
  }
}

const WHY: Record<Denial, string> = {
  rule: 'no rule of this sandbox allows it',
  address: 'it is an address that no rule names, or its name resolves to none that may be reached',
  credential: 'only credentials of this sandbox may be used there',
  method: 'its rule does not allow this method',
  path: 'its rule does not allow this path',
  protocol: 'the request is not one that the proxy can pass on',
};

export function denied(
  denial: Denial,
  target: Target,
  { rule = null, detail }: { rule?: string | null; detail?: string } = {},
): RefusedError {
  return new RefusedError(
    denial,
    403,
    `Slipway's egress proxy denied ${shownTarget(target)} (${denial}): ${detail ?? WHY[denial]}.`,
    rule,
  );
}

/** Asks for the credential that stands in the address of the proxy. */
export function unknownCaller(): RefusedError {
  return new RefusedError(
    null,
    407,
    'This proxy knows each sandbox by the credential in its address; this one is none.',
  );
}

/** One line of plain text, which git shows behind `remote:`; the caller ends the response. After a message that may be read in two ways, the connection ends. */
export function sendRefusal(response: ServerResponse, { status, denial, message }: RefusedError): void {
  const line = `${message}\n`;
  response.writeHead(status, STATUS_CODES[status], {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(line),
    ...(denial === 'protocol' && { Connection: 'close' }),
    ...(denial !== null && { 'X-Slipway-Egress': `denied; reason=${denial}` }),
    ...(status === 407 && { 'Proxy-Authenticate': 'Basic realm="slipway-egress"' }),
  });
  response.write(line);
}
