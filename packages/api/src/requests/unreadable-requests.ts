import { type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { problem, type Problem } from '../errors/problem.js';

/** Bounds the address and headers: proxies that sign people in add tokens and cookies beyond Node.js's 16 KiB. */
export const MAX_HEADER_BYTES = 65_536;

/** Node.js alone sends a status without a body. The connection ends, as the next request's beginning is unknown. */
export function answerUnreadableRequests(server: Server): void {
  Object.assign(server, { maxHeaderSize: MAX_HEADER_BYTES });
  const responses = new WeakMap<Duplex, ServerResponse>();
  server.prependListener('request', ({ socket }, response) => {
    responses.set(socket, response);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const last = responses.get(socket);
    const hasBegun = last !== undefined && last.headersSent && !last.writableFinished;
    if (socket.writable && !hasBegun) {
      socket.write(responseText(problemOf(error.code)));
    }
    socket.destroy(error);
  });
}

function problemOf(code: string | undefined): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return problem(
        431,
        'payload_too_large',
        `Address and headers of a request may have ${MAX_HEADER_BYTES} bytes together. Ask for less at once, such as fewer ids, or remove cookies.`,
        null,
      );
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return problem(413, 'payload_too_large', 'Send chunks of the body without extensions.', null);
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return problem(408, 'malformed_request', 'The request did not arrive in time. Send it again.', null);
    default:
      return problem(
        400,
        'malformed_request',
        'This is no valid HTTP/1.1 request. Check its method, address, headers and length.',
        null,
      );
  }
}

function responseText(body: Problem): string {
  const text = JSON.stringify(body);
  return [
    `HTTP/1.1 ${body.status} ${body.title}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Cache-Control: no-store',
    'Connection: close',
    '',
    text,
  ].join('\r\n');
}
