import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import express, { type Request, type RequestHandler } from 'express';
import { namesMediaType } from '@slipway/api/requests/response-headers.js';
import { StaticAnswer } from '@slipway/api/requests/static-answer.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { ARRIVAL_SCRIPT, CONNECT_PAGE } from './web-app-link.js';

/** The application's pages may have any other path. */
const OF_SERVICE =
  /^\/(?:api|auth|console|docs|health|openapi\.json|ready|alive|server_info|sockets)(?:\/|$)/;
const INLINE_SCRIPT = /<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g;
/** Names of files below it change with their content. */
const HASHED = '/assets/';
const YEAR_SECONDS = 31_536_000;
/** The application falls back to the machine's fonts when these cannot be loaded. */
const FONTS = { styles: 'https://fonts.googleapis.com', files: 'https://fonts.gstatic.com' };
/** The application links to this page of the hosted service, and has none of its own there. */
const INTEGRATIONS = '/settings/integrations';
const RELEASES = 'https://registry.npmjs.org';

/**
 * Serves a single-page application on the service's origin, its page at every free path. `sandboxes` are CSP sources;
 * only with `isLocal` (loopback) the page gets the service's script.
 * @throws ConfigError when the folder has no page
 */
export function webAppMiddleware(
  folder: string,
  sandboxes: readonly string[],
  isLocal: boolean,
): RequestHandler {
  const built = readPage(folder);
  const page = isLocal ? withArrival(built) : built;
  const headers = new Map([
    ['Content-Security-Policy', pagePolicy(page, sandboxes)],
    ['Cross-Origin-Opener-Policy', 'same-origin'],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
    ['Referrer-Policy', 'no-referrer'],
    ['X-Content-Type-Options', 'nosniff'],
    ['X-Frame-Options', 'SAMEORIGIN'],
  ]);
  const files = express.static(folder, {
    index: false,
    dotfiles: 'ignore',
    redirect: false,
    setHeaders: (response, file) => {
      const isHashed = file.startsWith(path.join(folder, HASHED));
      response.setHeader(
        'Cache-Control',
        isHashed ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
      );
    },
  });
  const answer = new StaticAnswer('text/html; charset=utf-8', () => page);
  const connect = new StaticAnswer('text/html; charset=utf-8', () => CONNECT_PAGE);
  const router = express.Router();
  router.use((request, response, next) => {
    if ((request.method !== 'GET' && request.method !== 'HEAD') || OF_SERVICE.test(request.path)) {
      next('router');
      return;
    }
    response.setHeaders(headers);
    next();
  });
  router.get(['/', '/index.html'], async (request, response) => answer.send(request, response));
  router.get(INTEGRATIONS, async (request, response, next) => {
    if (!wantsPage(request)) {
      next();
    } else if (isLocal) {
      response.setHeader('Content-Security-Policy', pagePolicy(CONNECT_PAGE, []));
      await connect.send(request, response);
    } else {
      response.redirect('/console/settings');
    }
  });
  router.use(files);
  router.use(async (request, response, next) => {
    if (wantsPage(request)) {
      await answer.send(request, response);
    } else {
      next();
    }
  });
  return router;
}

/** A missing file is no page. */
function wantsPage(request: Request): boolean {
  return path.extname(request.path) === '' && namesMediaType(request.headers.accept, 'text/html');
}

function readPage(folder: string): string {
  try {
    return readFileSync(path.join(folder, 'index.html'), 'utf8');
  } catch (error) {
    throw new ConfigError(`WEB_APP_FOLDER: ${folder} has no index.html; npm run web installs one`, {
      cause: error,
    });
  }
}

/** Before every script of the application. */
function withArrival(page: string): string {
  return page.replace(/<head[^>]*>/, (head) => `${head}<script>${ARRIVAL_SCRIPT}</script>`);
}

/** Allows the service's own origin and sandboxes, and only the application's scripts. */
function pagePolicy(page: string, sandboxes: readonly string[]): string {
  const inline = Array.from(page.matchAll(INLINE_SCRIPT), ([, text = '']) => {
    const digest = createHash('sha256').update(text).digest('base64');
    return `'sha256-${digest}'`;
  });
  const sockets = sandboxes.map((source) => source.replace(/^http/, 'ws'));
  const directives: [string, readonly string[]][] = [
    ['default-src', ["'self'"]],
    ['script-src', ["'self'", "'wasm-unsafe-eval'", ...new Set(inline)]],
    ['style-src', ["'self'", "'unsafe-inline'", FONTS.styles]],
    ['font-src', ["'self'", 'data:', FONTS.files]],
    ['img-src', ["'self'", 'data:', 'blob:', 'https:', ...sandboxes]],
    ['media-src', ["'self'", 'data:', 'blob:', ...sandboxes]],
    ['connect-src', ["'self'", 'data:', 'blob:', RELEASES, ...sandboxes, ...sockets]],
    ['frame-src', ["'self'", 'data:', 'blob:', ...sandboxes]],
    ['worker-src', ["'self'", 'blob:']],
    ['object-src', ["'none'"]],
    ['base-uri', ["'none'"]],
    ['form-action', ["'self'"]],
    ['frame-ancestors', ["'self'"]],
  ];
  return directives.map(([name, sources]) => `${name} ${sources.join(' ')}`).join('; ');
}
