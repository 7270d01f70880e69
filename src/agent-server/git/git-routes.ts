import { type Request, Router } from 'express';
import type { AllowedPaths } from '../files/allowed-paths.js';
import { givenPath } from '../http/given-path.js';
import type { GitWorkspace } from './git-workspace.js';

/** `/api/git`; the path stands in the query or behind the route. */
export function gitRoutes(paths: AllowedPaths, git: GitWorkspace): Router {
  const router = Router();

  router.get(['/changes', '/changes/*path'], async (request, response) => {
    response.json(await git.changes(await paths.resolve(givenPath(request)), refOf(request)));
  });

  router.get(['/diff', '/diff/*path'], async (request, response) => {
    response.json(await git.diff(await paths.resolve(givenPath(request)), refOf(request)));
  });

  return router;
}

function refOf(request: Request): string | null {
  const { ref } = request.query;
  return typeof ref === 'string' && ref !== '' ? ref : null;
}
