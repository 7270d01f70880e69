import { type ChangeRequestHost, requireOpened, requireRepository } from '../change-requests.js';
import type { NewChangeRequest, OpenedChangeRequest } from '../git-provider.js';
import { requireRepositoryPath } from '../repository-name.js';
import type { GitlabClient } from './gitlab.client.js';
import { isWithinProject, newMergeRequest, toOpenedMergeRequest } from './gitlab.mapper.js';
import { restMergeRequestSchema, restMergeRequestsSchema, restProjectSchema } from './gitlab.schema.js';

/** One page is enough: a pair of branches has few requests, even with those of forks. */
const PAGE_SIZE = 100;

export class GitlabChanges implements ChangeRequestHost {
  private readonly path: string;

  /** @throws GitProviderError with a reason for anything but a full path of a project */
  constructor(
    private readonly client: GitlabClient,
    repository: string,
  ) {
    this.path = `/v4/projects/${encodeURIComponent(requireRepositoryPath(repository))}`;
  }

  async defaultBranch(): Promise<string | null> {
    const project = await this.client.find(this.path, restProjectSchema);
    return requireRepository(project).default_branch;
  }

  async findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null> {
    const query = new URLSearchParams({
      state: 'opened',
      source_branch: sourceBranch,
      target_branch: targetBranch,
      per_page: String(PAGE_SIZE),
    });
    const path = `${this.path}/merge_requests?${query.toString()}`;
    const listed = await this.client.find(path, restMergeRequestsSchema);
    const found = requireRepository(listed).find(isWithinProject);
    return found ? toOpenedMergeRequest(found) : null;
  }

  async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    const body = newMergeRequest(request, targetBranch);
    const created = await this.client.change(`${this.path}/merge_requests`, body);
    const opened = toOpenedMergeRequest(restMergeRequestSchema.parse(created));
    return requireOpened(opened, this.client.origin);
  }
}
