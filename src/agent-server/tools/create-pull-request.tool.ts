import { z } from 'zod';
import type { MCPToolAction } from '../../agent-protocol/actions.js';
import type { MCPToolObservation } from '../../agent-protocol/observations.js';
import type { ToolDefinition } from '../../agent-protocol/tool-definition.js';
import { describeFailure } from '../failure.js';
import { branchSchema } from '../git/prepare-schema.js';
import { mcpToolDefinition } from './mcp-tool-definition.js';
import type { PullRequestOptions } from './pull-request.js';
import { SchemaTool } from './schema-tool.js';
import type { ToolContext } from './tool.js';

const schema = z.object({
  source_branch: branchSchema.describe('The local branch with your commits; it is pushed.'),
  target_branch: branchSchema.optional().describe('Where it shall be merged; by default the main branch.'),
  title: z.string().min(1).max(256),
  body: z.string().describe('What changed and why, in Markdown.'),
  draft: z.boolean().optional(),
});

/** Pushes a branch and has a pull request opened for it. */
export class CreatePullRequestTool extends SchemaTool<typeof schema> {
  readonly name = 'create_pull_request';
  readonly description =
    'Push a branch of the repository and open a pull request (merge request) for it. Commit your work to the branch ' +
    'first. Answers number and address.';
  readonly needsConfirmation = true;
  readonly schema = schema;
  readonly #options: PullRequestOptions;
  readonly #currentDir: () => string;

  /** @param currentDir a folder in the repository */
  constructor(options: PullRequestOptions, currentDir: () => string) {
    super();
    this.#options = options;
    this.#currentDir = currentDir;
  }

  toAction(input: z.output<typeof schema>): MCPToolAction {
    return { kind: 'MCPToolAction', data: input };
  }

  async run(input: z.output<typeof schema>, { signal }: ToolContext): Promise<MCPToolObservation> {
    const pushed = await this.#options.push(this.#currentDir(), input.source_branch, signal);
    if (!pushed.ok) {
      const cause = pushed.timedOut ? 'it took too long' : 'see what it says';
      return this.#observe(`git push failed (${cause}):\n${pushed.output}`, true);
    }
    try {
      const { number, url } = await this.#options.open(input, signal);
      return this.#observe(`Opened pull request ${number}: ${url}`, false);
    } catch (error) {
      const reason = describeFailure(error).message;
      return this.#observe(`The branch is pushed, but the pull request could not be opened: ${reason}`, true);
    }
  }

  definition(): ToolDefinition {
    return mcpToolDefinition(this);
  }

  #observe(text: string, isError: boolean): MCPToolObservation {
    return {
      kind: 'MCPToolObservation',
      content: [{ type: 'text', text }],
      is_error: isError,
      tool_name: this.name,
    };
  }
}
