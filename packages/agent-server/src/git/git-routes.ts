import { type Request, Router } from 'express';
import { z } from 'zod';
import {
  type GitPushResponse,
  gitPrepareSchema,
  gitPushSchema,
  type PushRequest,
} from '@slipway/agent-protocol/git.js';
import { absolutePath, asHttpError } from '../files/file-routes.js';
import { HttpError } from '../http/http-error.js';
import { parseRequest, requestedPath, type BaseFolder } from '../http/request-parsing.js';
import type { GitWorkspace } from './git-workspace.js';
import type { RepositoryPreparation } from './repository-preparation.js';

/** Only an id, because git could take another name for an option. */
const shaSchema = z.string().regex(/^[0-9a-fA-F]{4,64}$/, 'Input should be the id of a commit');
const diffSchema = z.object({ commit: shaSchema.optional() });
const commitsSchema = z.object({ limit: z.coerce.number().int().min(1).max(200).default(50) });

export type PushBranch = (folder: string, request: PushRequest) => Promise<GitPushResponse>;

interface GitRoutesOptions {
  git: GitWorkspace;
  preparation: RepositoryPreparation;
  push: PushBranch;
  baseFolder: BaseFolder;
}

export function gitRoutes({ git, preparation, push, baseFolder }: GitRoutesOptions): Router {
  const router = Router({ mergeParams: true });
  const pathOf = (request: Request): string => absolutePath(requestedPath(request), baseFolder(request));

  router.post('/prepare', async (request, response) => {
    const body = parseRequest(gitPrepareSchema, 'body', request.body);
    response.json(await preparation.prepare(body).catch(asHttpError));
  });

  router.post('/push', async (request, response) => {
    const body = parseRequest(gitPushSchema, 'body', request.body);
    const folder = absolutePath(body.directory, baseFolder(request));
    response.json(await push(folder, body).catch(asHttpError));
  });

  router.get(['/changes', '/changes/*path'], async (request, response) => {
    const folder = pathOf(request);
    response.json(await git.changes(folder, requestedRef(request)).catch(asHttpError));
  });

  router.get(['/diff', '/diff/*path'], async (request, response) => {
    const file = pathOf(request);
    const { commit } = parseRequest(diffSchema, 'query', request.query);
    const ref = requestedRef(request);
    if (commit !== undefined && ref !== null) {
      throw new HttpError(400, "'ref' and 'commit' are mutually exclusive");
    }
    const diff = commit === undefined ? git.diff(file, ref) : git.diffOfCommit(file, commit);
    response.json(await diff.catch(asHttpError));
  });

  router.get('/commits', async (request, response) => {
    const folder = pathOf(request);
    const { limit } = parseRequest(commitsSchema, 'query', request.query);
    response.json(await git.commits(folder, limit).catch(asHttpError));
  });

  router.get('/commits/:sha/changes', async (request, response) => {
    const folder = pathOf(request);
    const sha = parseRequest(shaSchema, 'path', request.params.sha);
    response.json(await git.changesOfCommit(folder, sha).catch(asHttpError));
  });

  return router;
}

function requestedRef(request: Request): string | null {
  const { ref } = request.query;
  return typeof ref === 'string' && ref !== '' ? ref : null;
}
