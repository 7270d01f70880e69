import { OutboundAddresses } from '../../../common/http/host-allowlist.js';
import type { RemoteAccess } from '../../git/remote-access.js';
import { CreatePullRequestTool, type PullRequestOptions } from '../../tools/pull-request.tool.js';
import { FileEditorTool } from '../../tools/file-editor.tool.js';
import { FinishTool, FinishWithResultTool } from '../../tools/finish.tool.js';
import { GitRemoteTool } from '../../tools/git-remote.tool.js';
import { lastPlan, TaskTrackerTool } from '../../tools/task-tracker.tool.js';
import { type McpFailure, McpToolbox } from '../../tools/mcp/mcp-toolbox.js';
import { ShellSession } from '../../tools/shell-session.js';
import { TerminalTool } from '../../tools/terminal.tool.js';
import { ThinkTool } from '../../tools/think.tool.js';
import type { Tool } from '../../tools/tool.js';
import { WebSearchTool } from '../../tools/web-search.tool.js';
import { toolEnvironment } from '../../tool-environment.js';
import type { ToolView } from '../../tool-view.js';
import type { EngineHost, EngineSettings } from '../agent-engine.js';

export interface NativeToolsOptions {
  /** The view for the terminal's shell, for tool servers that are child processes, and for files. */
  view: ToolView;
  /** null: the tool that opens pull requests is not offered. */
  pullRequests: PullRequestOptions | null;
  /** Access to git servers in place of the agent's shell; null while the shell has the credentials itself. */
  remoteAccess: () => RemoteAccess | null;
  mcpConnectTimeoutMs: number;
}

/** The tools of a conversation, with its shell and its tool servers. */
export class NativeTools {
  readonly #options: NativeToolsOptions;
  readonly #host: EngineHost;
  readonly #shell: ShellSession;
  readonly #builtIn: readonly Tool[];
  readonly #toolbox = new McpToolbox();

  constructor(host: EngineHost, options: NativeToolsOptions) {
    this.#options = options;
    this.#host = host;
    const shell = new ShellSession(host.settings.workingDir, options.view.wrapper);
    this.#shell = shell;
    const { resultSchema } = host.settings;
    this.#builtIn = [
      new TerminalTool(shell),
      new FileEditorTool(options.view),
      new TaskTrackerTool(() => lastPlan(host.events())),
      new ThinkTool(),
      resultSchema === null ? new FinishTool() : new FinishWithResultTool(resultSchema),
      ...(options.pullRequests === null
        ? []
        : [new CreatePullRequestTool(options.pullRequests, () => shell.workingDir)]),
    ];
  }

  /** Connects the tool servers. Returns those that cannot be used, and why. */
  async connect(): Promise<McpFailure[]> {
    const { mcpConfig, workingDir, outboundAllowlist } = this.#host.settings;
    const addresses = new OutboundAddresses(outboundAllowlist);
    return await this.#toolbox.connect(mcpConfig ?? {}, {
      workingDir,
      // A tool server gets only the secrets that its own configuration names.
      environment: toolEnvironment(this.#host.toolEnvironment()),
      wrapper: this.#options.view.wrapper,
      checkUrl: async ({ href }) => addresses.problem(href),
      connectTimeoutMs: this.#options.mcpConnectTimeoutMs,
    });
  }

  /** The tools that these settings allow, by name. */
  offeredTools({ searchApiKey, tavilyApiUrl }: EngineSettings): ReadonlyMap<string, Tool> {
    const search =
      searchApiKey === null ? [] : [new WebSearchTool({ apiKey: searchApiKey, apiUrl: tavilyApiUrl })];
    const access = this.#options.remoteAccess();
    const remote =
      access === null ? [] : [new GitRemoteTool(access, this.#options.view, () => this.#shell.workingDir)];
    const ours = [...this.#builtIn, ...remote, ...search];
    const all = [...ours, ...this.#toolbox.tools(ours.map(({ name }) => name))];
    return new Map(all.map((tool) => [tool.name, tool]));
  }

  /** Kills every child process. */
  async close(): Promise<void> {
    await Promise.all([this.#shell.reset(), this.#toolbox.close()]);
  }
}
