import path from 'node:path';
import { z } from 'zod';
import type { MCPToolObservation } from '@slipway/agent-protocol/events.js';
import { branchSchema } from '@slipway/agent-protocol/git.js';
import type { RemoteAccess } from '../git/remote-access.js';
import type { GitOutcome } from '../git/run-git.js';
import { McpSchemaTool, required, type ToolContext, ToolInputError } from './tool.js';
import { WorkspaceFileError, WorkspaceFiles } from '../files/workspace-files.js';
import type { ToolView } from '../tool-view.js';

const schema = z.object({
  operation: z.enum(['fetch', 'push', 'clone']),
  branch: branchSchema.optional().describe('For `push`: the local branch with your commits.'),
  url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('For `clone`: http(s) address of the repository.'),
  folder: z.string().min(1).optional().describe('For `clone`: a new folder of the workspace.'),
});

type Input = z.output<typeof schema>;

/** Contacts git servers for an agent whose shell has no credentials. */
export class GitRemoteTool extends McpSchemaTool<typeof schema> {
  readonly name = 'git_remote';
  readonly description =
    'Fetch, push or clone with the credentials of the user, which git in your shell does not have. `fetch` brings the ' +
    'remote branches of origin up to date, `push` sends one of your branches to origin under the same name, `clone` ' +
    'gets another repository. Merging, committing and all else is done in the shell.';
  readonly needsConfirmation = true;
  readonly schema = schema;
  readonly #access: RemoteAccess;
  readonly #view: ToolView;
  readonly #currentDir: () => string;

  constructor(access: RemoteAccess, view: ToolView, currentDir: () => string) {
    super();
    this.#access = access;
    this.#view = view;
    this.#currentDir = currentDir;
  }

  async run(input: Input, context: ToolContext): Promise<MCPToolObservation> {
    const { ok, timedOut, output } = await this.#execute(input, context);
    const outcome = ok ? 'succeeded' : timedOut ? 'timed out' : 'failed';
    return this.observe(`${output}\ngit ${input.operation} ${outcome}.`.trim(), !ok);
  }

  async #execute(input: Input, { workingDir, signal }: ToolContext): Promise<GitOutcome> {
    switch (input.operation) {
      case 'fetch':
        return await this.#access.fetch(this.#currentDir(), signal);
      case 'push':
        return await this.#access.push(this.#currentDir(), required(input.branch, 'branch'), signal);
      default: {
        const url = required(input.url, 'url');
        const files = new WorkspaceFiles(this.#view, [workingDir]);
        const given = path.resolve(workingDir, required(input.folder, 'folder'));
        const folder = await files.resolve(given).catch((error: unknown) => {
          throw error instanceof WorkspaceFileError ? new ToolInputError(`${error.message}.`) : error;
        });
        return await this.#access.clone(url, folder, signal);
      }
    }
  }
}
