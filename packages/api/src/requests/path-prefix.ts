import type { IncomingMessage, Server } from 'node:http';

/**
 * Takes the path of `PUBLIC_URL` off the addresses of requests, so that a proxy in front may keep it or not. Programs in
 * sandboxes have paths of their own: `isForSandbox` requests stay as they are.
 */
export function takeOffPathPrefix(
  server: Server,
  prefix: string,
  isForSandbox: (request: IncomingMessage) => boolean,
): void {
  const takeOff = (request: IncomingMessage): void => {
    const { url = '' } = request;
    const rest = url.slice(prefix.length);
    if (url.startsWith(prefix) && /^(?:[/?]|$)/.test(rest) && !isForSandbox(request)) {
      request.url = rest.startsWith('/') ? rest : `/${rest}`;
    }
  };
  server.prependListener('request', takeOff);
  server.prependListener('upgrade', takeOff);
}
