import { isNotFound, notFound } from '../provider-errors.js';
import {
  type FoundRepository,
  type Listing,
  pageOf,
  type RepositoryQuery,
  sliceOf,
  splitOwner,
} from '../repository-lists.js';
import type { BitbucketClient, BitbucketList } from './bitbucket.client.js';
import { repositoriesQuery, toFoundRepository } from './bitbucket.mapper.js';
import { type BitbucketFoundRepository, foundRepositoriesSchema } from './bitbucket.schema.js';

/** Bitbucket's longest page. */
const MAX_FOUND = 100;
/** Positions count through the pages of all workspaces, one workspace after the other. */
const PAGES_PER_WORKSPACE = 10_000;

function workspacePage(position: number): { index: number; page: number } {
  return {
    index: Math.floor((position - 1) / PAGES_PER_WORKSPACE),
    page: ((position - 1) % PAGES_PER_WORKSPACE) + 1,
  };
}

function workspacePosition(index: number, page: number): number {
  return index * PAGES_PER_WORKSPACE + page;
}

/**
 * Bitbucket has no list across workspaces: a text is looked for in the newest hundred of each, at once; without one
 * the workspaces follow each other.
 * @throws GitProviderError
 */
export async function findRepositories(
  client: BitbucketClient,
  query: RepositoryQuery,
  workspacesOf: () => Promise<readonly string[]>,
): Promise<Listing<FoundRepository>> {
  const { owner, part } = splitOwner(query.text ?? '');
  const only = query.installation ?? owner;
  const text = part === '' ? null : part;
  if (only !== null) {
    const found = await inWorkspace(client, only, repositoriesQuery(query, text, query));
    return pageOf(found.values.map(toFoundRepository), query, !found.complete);
  }
  const workspaces = await workspacesOf();
  if (text === null) {
    return await workspaceAfterWorkspace(client, workspaces, query);
  }
  const search = repositoriesQuery({ position: 1, limit: MAX_FOUND }, text, query);
  const lists = await Promise.all(workspaces.map((slug) => inOwnWorkspace(client, slug, search)));
  const all = lists.flatMap(({ values }) => values.map(toFoundRepository));
  return sliceOf(all.toSorted(byActivity(query)), query);
}

async function workspaceAfterWorkspace(
  client: BitbucketClient,
  workspaces: readonly string[],
  query: RepositoryQuery,
): Promise<Listing<FoundRepository>> {
  let { index, page } = workspacePage(query.position);
  for (const workspace of workspaces.slice(index)) {
    const range = { position: page, limit: query.limit };
    const found = await inOwnWorkspace(client, workspace, repositoriesQuery(range, null, query));
    const isLast = found.complete && index + 1 >= workspaces.length;
    if (found.values.length > 0 || isLast) {
      const next = found.complete ? workspacePosition(index + 1, 1) : workspacePosition(index, page + 1);
      return { items: found.values.map(toFoundRepository), next: isLast ? null : next };
    }
    index += 1;
    page = 1;
  }
  return { items: [], next: null };
}

/** A workspace that is gone, or was renamed, hides no other. */
async function inOwnWorkspace(
  client: BitbucketClient,
  workspace: string,
  search: string,
): Promise<BitbucketList<BitbucketFoundRepository>> {
  try {
    return await inWorkspace(client, workspace, search);
  } catch (error) {
    if (isNotFound(error)) {
      return { values: [], complete: true };
    }
    throw error;
  }
}

async function inWorkspace(
  client: BitbucketClient,
  workspace: string,
  search: string,
): Promise<BitbucketList<BitbucketFoundRepository>> {
  const found = /^[.-]*\w[\w.-]*$/.test(workspace)
    ? await client.list(`/repositories/${workspace}?${search}`, foundRepositoriesSchema, { maxPages: 1 })
    : null;
  if (found === null) {
    throw notFound('workspace');
  }
  return found;
}

function byActivity({ sort }: RepositoryQuery): (a: FoundRepository, b: FoundRepository) => number {
  const sign = sort?.endsWith('asc') ? 1 : -1;
  return (a, b) => sign * ((a.activeAt ?? 0) - (b.activeAt ?? 0));
}
