import { z } from 'zod';
import { requireRepository } from '../change-requests.js';
import { type FoundFork, ForkHost, toFork } from '../fork-host.js';
import type { ChangeHead, OwnRights } from '../forks.js';
import {
  flag,
  number,
  object,
  requireFitting,
  requiredId,
  requiredList,
  requiredName,
  text,
} from '../response-schema.js';
import { projectPath } from './gitlab.changes.js';
import type { GitlabClient } from './gitlab.client.js';

/** Access level from which a member may push (https://docs.gitlab.com/api/access_requests/). */
export const DEVELOPER = 30;

const mergeRequestSchema = object({
  /** The source project's id; null once the fork is deleted. */
  source_project_id: number,
  source_branch: requiredName,
  target_branch: requiredName,
  allow_collaboration: flag,
});
const access = object({ access_level: number });
const projectSchema = object({
  permissions: object({ project_access: access, group_access: access }),
  forking_access_level: text,
});
const accountSchema = object({ id: requiredId });
const forkSchema = z.object({ path_with_namespace: requiredName, import_status: text });
const forksSchema = requiredList(forkSchema);

/** See https://docs.gitlab.com/api/project_forks/. */
export class GitlabForks extends ForkHost<GitlabClient> {
  async head(repository: string, iid: number): Promise<ChangeHead | null> {
    const path = `${projectPath(repository)}/merge_requests/${iid}`;
    const found = await this.client.find(path, mergeRequestSchema);
    const source = found?.source_project_id ?? null;
    const project = source === null ? null : await this.client.find(`/v4/projects/${source}`, forkSchema);
    return (
      found && {
        repository: project?.path_with_namespace ?? null,
        branch: found.source_branch,
        targetBranch: found.target_branch,
        ref: `refs/merge-requests/${iid}/head`,
        allowsMaintainers: found.allow_collaboration,
      }
    );
  }

  /** A project tells of members by other groups only when asked for one. */
  async rights(repository: string): Promise<OwnRights> {
    const path = projectPath(repository);
    const { permissions, forking_access_level: forking } = requireRepository(
      await this.client.find(path, projectSchema),
    );
    const own = [permissions.project_access, permissions.group_access].map(
      ({ access_level: level }) => level,
    );
    const isMember = Math.max(...own.map((level) => level ?? 0)) >= DEVELOPER;
    return { push: isMember || (await this.isDeveloper(path)), fork: forking !== 'disabled' };
  }

  protected async find(repository: string): Promise<FoundFork | null> {
    const path = `${projectPath(repository)}/forks?owned=true&per_page=100`;
    const [fork] = requireRepository(await this.client.find(path, forksSchema));
    return fork ? forkOf(fork) : null;
  }

  protected async create(repository: string, name: string): Promise<FoundFork> {
    const created = await this.client.change(`${projectPath(repository)}/fork`, { name, path: name });
    return forkOf(requireFitting(forkSchema, created, 'the response is no fork'));
  }

  protected async isReady(fork: string): Promise<boolean> {
    const found = await this.client.find(projectPath(fork), forkSchema);
    return found !== null && forkOf(found).isReady === true;
  }

  private async isDeveloper(path: string): Promise<boolean> {
    const { data } = await this.client.require('/v4/user', accountSchema);
    const member = await this.client.find(`${path}/members/all/${encodeURIComponent(data.id)}`, access);
    return (member?.access_level ?? 0) >= DEVELOPER;
  }
}

function forkOf({
  path_with_namespace: name,
  import_status: status,
}: z.output<typeof forkSchema>): FoundFork {
  const isCopying = status === 'scheduled' || status === 'started';
  return toFork(name, isCopying ? 'copying' : status === 'failed' ? 'failed' : 'ready');
}
