import path from 'node:path';
import { z } from 'zod';
import { branchSchema } from '@slipway/agent-protocol/git.js';
import type { RemoteAccess } from '../git/remote-access.js';
import type { GitOutcome } from '../git/run-git.js';
import { mcpSchemaTool, required, type Tool, ToolInputError } from './tool.js';
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

export function gitRemoteTool(access: RemoteAccess, view: ToolView, currentDir: () => string): Tool {
  return mcpSchemaTool({
    name: 'git_remote',
    description:
      'Fetch, push or clone with the credentials of the user, which git in your shell does not have. `fetch` brings the ' +
      'remote branches of origin up to date, `push` sends one of your branches to origin under the same name, `clone` ' +
      'gets another repository. Merging, committing and all else is done in the shell.',
    needsConfirmation: true,
    schema,
    run: async (input, { workingDir, signal }) => {
      const { ok, timedOut, output } = await execute();
      const outcome = ok ? 'succeeded' : timedOut ? 'timed out' : 'failed';
      return { text: `${output}\ngit ${input.operation} ${outcome}.`.trim(), isError: !ok };

      async function execute(): Promise<GitOutcome> {
        switch (input.operation) {
          case 'fetch':
            return await access.fetch(currentDir(), signal);
          case 'push':
            return await access.push(currentDir(), required(input.branch, 'branch'), signal);
          default: {
            const url = required(input.url, 'url');
            const given = path.resolve(workingDir, required(input.folder, 'folder'));
            const files = new WorkspaceFiles(view, [workingDir]);
            const folder = await files.resolve(given).catch((error: unknown) => {
              throw error instanceof WorkspaceFileError ? new ToolInputError(`${error.message}.`) : error;
            });
            return await access.clone(url, folder, signal);
          }
        }
      }
    },
  });
}
