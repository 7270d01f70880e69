import { type AppParts, createApp } from './create-app.js';
import type { HttpSide } from './http/front-door.js';
import type { SocketLimits } from './sockets/socket-limits.js';
import { Sockets } from './sockets/sockets.js';

export interface HttpSideParts extends AppParts {
  sockets: SocketLimits;
}

/** Routes and sockets. Loading this module loads Express and zod: import it once the server listens. */
export function createHttpSide(parts: HttpSideParts): HttpSide {
  const { conversations, commands, keys, activity } = parts;
  const sockets = new Sockets({
    conversations,
    commands,
    keys,
    limits: parts.sockets,
    touch: () => activity.touch(),
  });
  sockets.watch();
  const app = createApp(parts);
  return {
    handle: (request, response) => app(request, response),
    upgrade: (request, stream, head) => sockets.upgrade(request, stream, head),
    close: () => sockets.close(),
  };
}
