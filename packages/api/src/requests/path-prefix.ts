import type { IncomingMessage, Server } from 'node:http';

/**
 * Takes the path of the service's public address off those of requests, so that a proxy in front may keep it or not.
 * `hasOwnPaths` requests, as for programs behind the service, stay as they are.
 */
export function takeOffPathPrefix(
  server: Server,
  prefix: string,
  hasOwnPaths: (request: IncomingMessage) => boolean,
): void {
  const takeOff = (request: IncomingMessage): void => {
    const { url = '' } = request;
    const rest = url.slice(prefix.length);
    if (url.startsWith(prefix) && /^(?:[/?]|$)/.test(rest) && !hasOwnPaths(request)) {
      request.url = rest.startsWith('/') ? rest : `/${rest}`;
    }
  };
  server.prependListener('request', takeOff);
  server.prependListener('upgrade', takeOff);
}
