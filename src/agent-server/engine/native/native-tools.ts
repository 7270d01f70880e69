import { OutboundAddresses } from '../../../common/http/host-allowlist.js';
import type { RemoteAccess } from '../../git/remote-access.js';
import { CreatePullRequestTool, type PullRequestOptions } from '../../tools/pull-request.tool.js';
import { FileEditorTool } from '../../tools/file-editor.tool.js';
import { FinishTool, ThinkTool } from '../../tools/small-tools.js';
import { GitRemoteTool } from '../../tools/git-remote.tool.js';
import { lastPlan, TaskTrackerTool } from '../../tools/task-tracker.tool.js';
import { type McpFailure, McpToolbox } from '../../tools/mcp/mcp-toolbox.js';
import { ShellSession } from '../../tools/shell-session.js';
import { TerminalTool } from '../../tools/terminal.tool.js';
import type { Tool } from '../../tools/tool.js';
import { WebSearchTool } from '../../tools/web-search.tool.js';
import { toolEnvironment } from '../../tool-environment.js';
import type { EngineHost, EngineSettings } from '../agent-engine.js';

export interface NativeToolsOptions {
  /** Put before the terminal's shell and before tool servers that are programs. */
  shellWrapper: readonly string[];
  /** null: nobody opens pull requests, the tool is not offered. */
  pullRequests: PullRequestOptions | null;
  /** Speaks with git servers in place of the agent's shell; null while the shell may do so itself. */
  remoteAccess: () => RemoteAccess | null;
  mcpConnectTimeoutMs: number;
}

/** A conversation's tools and what they hold: a shell, tool servers. */
export class NativeTools {
  readonly #options: NativeToolsOptions;
  readonly #host: EngineHost;
  readonly #shell: ShellSession;
  readonly #builtIn: readonly Tool[];
  readonly #toolbox = new McpToolbox();

  constructor(host: EngineHost, options: NativeToolsOptions) {
    this.#options = options;
    this.#host = host;
    const shell = new ShellSession(host.settings.workingDir, options.shellWrapper);
    this.#shell = shell;
    this.#builtIn = [
      new TerminalTool(shell),
      new FileEditorTool(),
      new TaskTrackerTool(() => lastPlan(host.events())),
      new ThinkTool(),
      new FinishTool(),
      ...(options.pullRequests === null
        ? []
        : [new CreatePullRequestTool(options.pullRequests, () => shell.workingDir)]),
    ];
  }

  /** Opens the tool servers; those that cannot be used are answered, not thrown. */
  async connect(): Promise<McpFailure[]> {
    const { mcpConfig, workingDir, outboundAllowlist } = this.#host.settings;
    const addresses = new OutboundAddresses(outboundAllowlist);
    return await this.#toolbox.connect(mcpConfig ?? {}, {
      workingDir,
      // A tool server gets secrets only where its own configuration names them.
      environment: toolEnvironment(this.#host.toolEnvironment()),
      wrapper: this.#options.shellWrapper,
      checkUrl: async ({ href }) => addresses.problem(href),
      connectTimeoutMs: this.#options.mcpConnectTimeoutMs,
    });
  }

  /** What is offered under these settings, by name. */
  offered({ searchApiKey, tavilyApiUrl }: EngineSettings): ReadonlyMap<string, Tool> {
    const search =
      searchApiKey === null ? [] : [new WebSearchTool({ apiKey: searchApiKey, apiUrl: tavilyApiUrl })];
    const access = this.#options.remoteAccess();
    const remote = access === null ? [] : [new GitRemoteTool(access, () => this.#shell.workingDir)];
    const own = [...this.#builtIn, ...remote, ...search];
    const all = [...own, ...this.#toolbox.tools(own.map(({ name }) => name))];
    return new Map(all.map((tool) => [tool.name, tool]));
  }

  /** Ends every child process. */
  async close(): Promise<void> {
    await Promise.all([this.#shell.reset(), this.#toolbox.close()]);
  }
}
