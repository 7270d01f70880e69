import { type Request, Router } from 'express';
import type { AllowedPaths } from '../files/allowed-paths.js';
import { givenPath } from '../http/given-path.js';
import { parseRequest } from '../http/parse-request.js';
import type { GitWorkspace } from './git-workspace.js';
import { gitPrepareSchema } from './prepare-schema.js';
import type { RepositoryPreparation } from './repository-preparation.js';

export interface GitRoutesOptions {
  paths: AllowedPaths;
  git: GitWorkspace;
  preparation: RepositoryPreparation;
}

/** `/api/git`; the path stands in the query or behind the route. */
export function gitRoutes({ paths, git, preparation }: GitRoutesOptions): Router {
  const router = Router();

  router.post('/prepare', async (request, response) => {
    response.json(await preparation.prepare(parseRequest(gitPrepareSchema, 'body', request.body)));
  });

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
