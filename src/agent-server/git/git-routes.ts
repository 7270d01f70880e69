import { type Request, Router } from 'express';
import { absolutePath, asHttpError } from '../files/file-routes.js';
import { parseRequest, requestedPath } from '../http/request-parsing.js';
import { gitPrepareSchema } from './git-schemas.js';
import type { GitWorkspace } from './git-workspace.js';
import type { RepositoryPreparation } from './repository-preparation.js';

interface GitRoutesOptions {
  git: GitWorkspace;
  preparation: RepositoryPreparation;
}

/** `/api/git`; the path is in the query or behind the route. */
export function gitRoutes({ git, preparation }: GitRoutesOptions): Router {
  const router = Router();

  router.post('/prepare', async (request, response) => {
    const body = parseRequest(gitPrepareSchema, 'body', request.body);
    response.json(await preparation.prepare(body).catch(asHttpError));
  });

  router.get(['/changes', '/changes/*path'], async (request, response) => {
    const folder = absolutePath(requestedPath(request));
    response.json(await git.changes(folder, requestedRef(request)).catch(asHttpError));
  });

  router.get(['/diff', '/diff/*path'], async (request, response) => {
    const file = absolutePath(requestedPath(request));
    response.json(await git.diff(file, requestedRef(request)).catch(asHttpError));
  });

  return router;
}

function requestedRef(request: Request): string | null {
  const { ref } = request.query;
  return typeof ref === 'string' && ref !== '' ? ref : null;
}
