import { type Request, Router } from 'express';
import type { AllowedPaths } from '../files/allowed-paths.js';
import { parseRequest, requestedPath } from '../http/request-parsing.js';
import { gitPrepareSchema } from './git-schemas.js';
import type { GitWorkspace } from './git-workspace.js';
import type { RepositoryPreparation } from './repository-preparation.js';

interface GitRoutesOptions {
  paths: AllowedPaths;
  git: GitWorkspace;
  preparation: RepositoryPreparation;
}

/** `/api/git`; the path is in the query or behind the route. */
export function gitRoutes({ paths, git, preparation }: GitRoutesOptions): Router {
  const router = Router();

  router.post('/prepare', async (request, response) => {
    response.json(await preparation.prepare(parseRequest(gitPrepareSchema, 'body', request.body)));
  });

  router.get(['/changes', '/changes/*path'], async (request, response) => {
    const folder = await paths.resolve(requestedPath(request));
    response.json(await git.changes(folder, requestedRef(request)));
  });

  router.get(['/diff', '/diff/*path'], async (request, response) => {
    const file = await paths.resolve(requestedPath(request));
    response.json(await git.diff(file, requestedRef(request)));
  });

  return router;
}

function requestedRef(request: Request): string | null {
  const { ref } = request.query;
  return typeof ref === 'string' && ref !== '' ? ref : null;
}
