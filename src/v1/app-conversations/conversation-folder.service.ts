import path from 'node:path';
import { Injectable } from '@nestjs/common';
import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { AgentServerCommands } from '../agent-servers/agent-server.commands.js';
import { AgentServerHttp } from '../agent-servers/agent-server.http.js';
import { AgentInputsReader } from './agent-request/agent-inputs.reader.js';
import { ConversationActionsService } from './conversation-actions.service.js';

/** The repository determines the size of the response, so too much is no breach. */
const CALL = { method: 'POST' as const, mayExceed: true };
const SKILL_TYPES = ['repo', 'knowledge', 'agentskills'] as const;

export interface ConversationSkill {
  name: string;
  type: (typeof SKILL_TYPES)[number];
  content: string;
  triggers: string[];
}

/** Names of events in responses, and as hook files may write them. */
const HOOK_EVENTS = {
  pre_tool_use: 'PreToolUse',
  post_tool_use: 'PostToolUse',
  user_prompt_submit: 'UserPromptSubmit',
  session_start: 'SessionStart',
  session_end: 'SessionEnd',
  stop: 'Stop',
} as const;

const MAX_HOOKS = 100;
const DEFAULT_HOOK_TIMEOUT_SECONDS = 60;

export interface HookEvent {
  event_type: string;
  matchers: {
    matcher: string;
    hooks: { type: string; command: string; timeout: number; async: boolean }[];
  }[];
}

const MAX_FILES = 2_000;
/** Limits the work in an endless folder. */
const MAX_FOUND = 50_000;
const MAX_CHARACTERS = 1_000_000;
const FILES_TIMEOUT_SECONDS = 20;
/** Installed packages, caches and build output. */
const LEFT_OUT = [
  '.git',
  'node_modules',
  '.venv',
  'venv',
  '__pycache__',
  'dist',
  'build',
  '.next',
  '.cache',
  '.pytest_cache',
  '.mypy_cache',
  '.turbo',
  '.parcel-cache',
  'target',
];

@Injectable()
export class ConversationFolderService {
  constructor(
    private readonly actions: ConversationActionsService,
    private readonly http: AgentServerHttp,
    private readonly commands: AgentServerCommands,
    private readonly inputs: AgentInputsReader,
  ) {}

  /** Enabled skills; none unless the sandbox runs. Throws DomainError as `ConversationActionsService.read`. */
  async skills(userId: string, id: string): Promise<ConversationSkill[]> {
    const response = await this.readIfRunning(userId, id, '/api/skills', (folder) => ({
      load_public: false,
      load_org: false,
      load_user: true,
      load_project: true,
      project_dir: folder,
    }));
    const { settings } = await this.inputs.readConfiguration(userId, null);
    const disabled = new Set(settings.disabled_skills);
    return jsonList(response, 'skills')
      .flatMap(toSkill)
      .filter(({ name }) => !disabled.has(name));
  }

  /** As the file of hooks is now. Throws as `skills`. */
  async hooks(userId: string, id: string): Promise<HookEvent[]> {
    const response = await this.readIfRunning(userId, id, '/api/hooks', (folder) => ({
      project_dir: folder,
    }));
    return toHookEvents(jsonAt(response, 'hook_config'));
  }

  /**
   * Up to 2,000 sorted relative paths below a folder, which is absolute or below the conversation's folder; none if it
   * does not exist.
   * @throws DomainError as `ConversationActionsService.read`
   */
  async files(userId: string, id: string, folder: string): Promise<string[]> {
    return this.actions.read(userId, id, async (target, { working_dir: base }) => {
      const { stdout } = await this.commands.run(target, {
        command: filesCommand(path.posix.resolve('/', base, folder)),
        cwd: null,
        timeoutSeconds: FILES_TIMEOUT_SECONDS,
        keepCharacters: 2 * MAX_CHARACTERS,
        signal: AbortSignal.timeout((FILES_TIMEOUT_SECONDS + 1) * 1000),
      });
      return stdout
        .split('\n')
        .filter((line) => line.startsWith('./') && line.length > 2)
        .map((line) => line.slice(2))
        .slice(0, MAX_FILES);
    });
  }

  private async readIfRunning(
    userId: string,
    id: string,
    route: string,
    body: (folder: string) => object,
  ): Promise<unknown> {
    try {
      return await this.actions.read(userId, id, async (target, { working_dir: folder }) =>
        this.http.json(target, route, { ...CALL, body: body(path.posix.resolve('/', folder)) }),
      );
    } catch (error) {
      if (error instanceof DomainError && error.code === 'sandbox_not_running') {
        return null;
      }
      throw error;
    }
  }
}

/** Runs as the sandbox's tools do, and prints whole lines, at most `MAX_CHARACTERS` bytes. */
export function filesCommand(folder: string): string {
  const names = LEFT_OUT.map((name) => `-name ${name}`).join(' -o ');
  const quoted = `'${folder.replaceAll("'", String.raw`'\''`)}'`;
  return [
    `cd -- ${quoted} 2>/dev/null || exit 0`,
    `find . -type d \\( ${names} \\) -prune -o -type f -print 2>/dev/null | head -n ${MAX_FOUND} | LC_ALL=C sort | head -n ${MAX_FILES} | head -c ${MAX_CHARACTERS}`,
  ].join('; ');
}

function toSkill(value: unknown): ConversationSkill[] {
  const name = jsonText(value, 'name');
  if (name === null) {
    return [];
  }
  const triggers = jsonList(value, 'triggers').filter((word) => typeof word === 'string');
  const given = jsonText(value, 'type');
  const derived =
    jsonAt(value, 'is_agentskills_format') === true
      ? 'agentskills'
      : triggers.length === 0
        ? 'repo'
        : 'knowledge';
  const type = SKILL_TYPES.find((known) => known === given) ?? derived;
  return [{ name, type, content: jsonText(value, 'content') ?? '', triggers }];
}

/** Also accepts hooks below `hooks`, and other names of events. */
export function toHookEvents(value: unknown): HookEvent[] {
  const config = jsonAt(value, 'hooks') ?? value;
  return Object.entries(HOOK_EVENTS).flatMap(([event, alias]) => {
    const given = jsonList(config, event);
    const matchers = (given.length > 0 ? given : jsonList(config, alias)).slice(0, MAX_HOOKS).map((each) => ({
      matcher: jsonText(each, 'matcher') ?? '*',
      hooks: jsonList(each, 'hooks')
        .slice(0, MAX_HOOKS)
        .flatMap((hook) => {
          const command = jsonText(hook, 'command');
          return command === null
            ? []
            : [
                {
                  type: jsonText(hook, 'type') ?? 'command',
                  command,
                  timeout: jsonNumber(hook, 'timeout') ?? DEFAULT_HOOK_TIMEOUT_SECONDS,
                  async: jsonAt(hook, 'async') === true,
                },
              ];
        }),
    }));
    return matchers.length === 0 ? [] : [{ event_type: event, matchers }];
  });
}
