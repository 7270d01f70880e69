import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { DomainError } from '../common/errors/domain-error.js';
import { productFolder, productVersion } from '../common/product.js';
import { namesMediaType } from '@slipway/api/requests/response-headers.js';
import { StaticAnswer } from '@slipway/api/requests/static-answer.js';

const HTML = 'text/html; charset=utf-8';
const TYPES = new Map([
  ['.css', 'text/css; charset=utf-8'],
  ['.html', HTML],
  ['.ico', 'image/x-icon'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.json', 'application/json; charset=utf-8'],
  ['.png', 'image/png'],
  ['.svg', 'image/svg+xml'],
  ['.txt', 'text/plain; charset=utf-8'],
  ['.woff2', 'font/woff2'],
]);
/** Names of files below it change with their content. */
const HASHED = 'assets/';
const PAGE = 'index.html';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');
const HEADERS = new Map([
  ['Content-Security-Policy', POLICY],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
]);

const NOT_BUILT = 'The console is not built. In a checkout of the repository, npm run build builds it.';
const NOT_BUILT_PAGE = `<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Slipway</title>
  </head>
  <body>
    <h1>Slipway</h1>
    <p>${NOT_BUILT}</p>
    <p>Until then, there are <a href="/docs">the API's documentation</a> and <a href="/health/ready">its health</a>.</p>
  </body>
</html>
`;

interface ConsoleOptions {
  /** Folder of the built files; if there are none, the page says how to build them. */
  folder: string;
  /** Whether `/` is free for the console: the web application of others is there otherwise. */
  isAtRoot: boolean;
  /** Before every path in a browser, as `/slipway`, or empty. */
  pathPrefix: string;
}

export function builtConsoleFolder(): string {
  return path.join(productFolder(), 'dist', 'console');
}

export function hasBuiltConsole(): boolean {
  return existsSync(path.join(builtConsoleFolder(), PAGE));
}

/** Serves the console below `/console/`, and at `/` to those who ask for a page. */
export function consolePages({ folder, isAtRoot, pathPrefix }: ConsoleOptions): RequestHandler {
  const files = readFiles(folder, pathPrefix);
  const page = files.get(PAGE);
  const router = express.Router();
  const sendPage = async (request: Request, response: Response): Promise<void> => {
    response.setHeaders(HEADERS);
    if (page) {
      await page.send(request, response);
      return;
    }
    if (!namesMediaType(request.headers.accept, 'text/html')) {
      throw new DomainError('not_found', NOT_BUILT);
    }
    response
      .status(404)
      .type(HTML)
      .send(NOT_BUILT_PAGE.replaceAll('href="', `href="${pathPrefix}`));
  };
  if (isAtRoot) {
    const overview = new StaticAnswer('application/json; charset=utf-8', () =>
      overviewText(page !== undefined, pathPrefix),
    );
    router.get('/', async (request, response) => {
      response.vary('Accept');
      await (namesMediaType(request.headers.accept, 'text/html')
        ? sendPage(request, response)
        : overview.send(request, response));
    });
  }
  // Devices print the first address, and people type the second.
  router.get(['/oauth/device/verify', '/oauth/device'], (request, response) => {
    response.redirect(303, `${pathPrefix}/console/device${request.url.slice(request.path.length)}`);
  });
  router.get(['/console', '/console/*path'], async (request, response) => {
    const name = request.path.slice('/console/'.length);
    const file = files.get(name);
    if (file) {
      response.setHeaders(HEADERS);
      await file.send(request, response);
    } else if (path.posix.extname(name) === '') {
      await sendPage(request, response);
    } else {
      throw new DomainError('not_found', 'The console has no such file.');
    }
  });
  return router;
}

/** Only these are ever sent, whatever a request names. */
function readFiles(folder: string, pathPrefix: string): Map<string, StaticAnswer> {
  const entries = existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [];
  return new Map(
    entries
      .filter((entry) => entry.isFile())
      .map((file) => {
        const name = path.relative(folder, path.join(file.parentPath, file.name)).split(path.sep).join('/');
        const type = TYPES.get(path.extname(name)) ?? 'application/octet-stream';
        const cache = name.startsWith(HASHED) ? 'immutable' : 'revalidated';
        return [name, new StaticAnswer(type, async () => contentOf(folder, name, pathPrefix), cache)];
      }),
  );
}

/** The page has any address, so its links to files are whole ones; it tells the console what is before them. */
async function contentOf(folder: string, name: string, pathPrefix: string): Promise<Buffer> {
  const content = await readFile(path.join(folder, name));
  if (name !== PAGE) {
    return content;
  }
  return Buffer.from(
    content
      .toString('utf8')
      .replaceAll('="./', `="${pathPrefix}/console/`)
      .replace('name="path-prefix" content=""', `name="path-prefix" content="${pathPrefix}"`),
  );
}

/** Answers programs that ask for nothing in particular. */
function overviewText(hasConsole: boolean, pathPrefix: string): string {
  return JSON.stringify({
    title: 'Slipway',
    version: productVersion(),
    docs: `${pathPrefix}/docs`,
    openapi: `${pathPrefix}/openapi.json`,
    api: `${pathPrefix}/api`,
    health: `${pathPrefix}/health/ready`,
    console: hasConsole ? `${pathPrefix}/console/` : null,
  });
}
