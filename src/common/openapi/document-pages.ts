import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { HttpServer, INestApplication } from '@nestjs/common';
import type { Request, Response } from 'express';
import { productFolder } from '../product.js';
import { StaticAnswer } from '@slipway/api/requests/static-answer.js';
import { FIRST_TAG } from './introduction.js';
import { SESSION_SCHEME } from './complete-operation.js';
import { buildOpenApiDocument } from './openapi-document.js';

const DOCUMENT = '/openapi.json';
const JSON_TYPE = 'application/json; charset=utf-8';
const HTML = 'text/html; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';
const INIT = 'swagger-ui-init.js';

const FILES: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': SCRIPT,
  'favicon-16x16.png': 'image/png',
  'favicon-32x32.png': 'image/png',
};

const pageBelow = (prefix: string): string => `<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Slipway API</title>
    <link rel="stylesheet" href="${prefix}/docs/swagger-ui.css">
    <link rel="icon" type="image/png" href="${prefix}/docs/favicon-32x32.png" sizes="32x32">
    <link rel="icon" type="image/png" href="${prefix}/docs/favicon-16x16.png" sizes="16x16">
    <style>body { margin: 0; background: #fafafa; }</style>
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="${prefix}/docs/swagger-ui-bundle.js"></script>
    <script src="${prefix}/docs/${INIT}"></script>
  </body>
</html>
`;

// Swagger UI reads JSON as YAML, resolves the whole document because a security scheme might be a reference (ours are not),
// and draws every operation and schema at once; without that, the first operation shows in a fifth of the time.
// What may be left out is not filled in: made-up filters find nothing, and a made-up key repeats an earlier request.
const scriptBelow = (prefix: string): string => `function withoutGuesses(name, part) {
  if (part && part.in && part.schema && !part.required) delete part.schema.example;
  return part;
}
// Who is signed in needs no key here: changes by a session carry its token.
function withSession(request) {
  var hasKey = ['X-Session-API-Key', 'Authorization'].some(function (name) { return name in request.headers; });
  if (request.loadSpec || hasKey || /^(?:GET|HEAD)$/i.test(request.method || 'GET')) return request;
  return fetch('${prefix}/auth/session').then(function (answer) { return answer.json(); }).then(function (session) {
    if (session.csrf_token) request.headers['X-CSRF-Token'] = session.csrf_token;
    return request;
  });
}
// A page sets no cookie of a session: in its place, Authorize says who is signed in, or leads to the sign-in and back.
var session = {}; fetch('${prefix}/auth/session').then(function (answer) { return answer.json(); }).then(function (found) { session = found; });
function signIn(KeyField, system) { return function (props) {
  if (props.name !== '${SESSION_SCHEME}') return system.React.createElement(KeyField, props);
  var there = session.sign_in_url ? session.sign_in_url + '?return_to=' + encodeURIComponent(location.pathname) : '${prefix}/console/';
  return session.user ? 'You are signed in as ' + session.user.email + '.' : system.React.createElement('a', { href: there }, 'Sign in');
}; }
var ui = SwaggerUIBundle({
  url: '${prefix}${DOCUMENT}',
  dom_id: '#swagger-ui',
  deepLinking: true,
  requestInterceptor: withSession,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [function () {
    return { wrapComponents: { apiKeyAuth: signIn }, statePlugins: { spec: { wrapActions: {
      parseToJson: function (parse, system) {
        return function (text) { system.specActions.updateJsonSpec(JSON.parse(text, withoutGuesses)); };
      },
      requestResolvedSubtree: function (request) {
        return function (path) { if (path[0] !== 'components') request(path); };
      },
    } } } };
  }],
  layout: 'BaseLayout',
  docExpansion: 'none',
  defaultModelsExpandDepth: -1,
  persistAuthorization: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  onComplete: function () { ui.layoutActions.show(['operations-tag', '${FIRST_TAG}'], true); },
});
`;

/** `SwaggerModule.setup` writes the document anew for each request, and serves every file of its package. */
export function serveDocumentPages(app: INestApplication, publicUrl: string | null, prefix: string): void {
  const server: HttpServer<Request, Response> = app.getHttpAdapter();
  const page = new StaticAnswer(HTML, () => pageBelow(prefix));
  const answers: [string, StaticAnswer][] = [
    [DOCUMENT, new StaticAnswer(JSON_TYPE, () => JSON.stringify(buildOpenApiDocument(app, publicUrl)))],
    ['/docs', page],
    ['/docs/index.html', page],
    [`/docs/${INIT}`, new StaticAnswer(SCRIPT, () => scriptBelow(prefix))],
    ...Object.entries(FILES).map(([name, type]): [string, StaticAnswer] => [
      `/docs/${name}`,
      new StaticAnswer(type, () => readFile(swaggerFile(name))),
    ]),
  ];
  for (const [address, answer] of answers) {
    server.get(address, async (request: Request, response: Response) => answer.send(request, response));
  }
}

/** A build has copies beside its bundle, which runs without `node_modules`. */
function swaggerFile(name: string): string {
  const copy = path.join(productFolder(), 'dist', 'swagger-ui', name);
  return existsSync(copy) ? copy : createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`);
}
