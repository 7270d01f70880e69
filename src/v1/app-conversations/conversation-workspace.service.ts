import path from 'node:path';
import { pipeline, Readable, Transform } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { isText, JsonStringStream } from '@slipway/common/json-string.stream.js';
import { AgentServerError, AgentServerHttp } from '@slipway/agent-client/agent-server.http.js';
import { AgentInputsReader } from './agent-request/agent-inputs.reader.js';
import type { Download } from './api/download.sender.js';
import { ConversationActionsService } from './conversation-actions.service.js';
import { ConversationRepository } from './conversation.repository.js';
import { FileLists } from './kept-changes/file-lists.js';
import {
  type Kept,
  keptAt,
  keptChangesBelow,
  keptDiffOf,
  keptPathsBelow,
  KeptChangesRepository,
} from './kept-changes/kept-changes.repository.js';

const MIB = 1024 * 1024;
/** Programs cannot hold much longer strings; larger files need the download from the agent server. */
const MAX_FILE_BYTES = 256 * MIB;
/** From the first byte to the last; the sender drops clients that read slowly. */
const FILE_TIMEOUT_MS = 30 * 60_000;
/** Enough to tell whether a file is a text. */
const BEGINNING_BYTES = 64 * 1024;
const TEXT = { 'Content-Type': 'application/json; charset=utf-8' };
const BYTES = {
  'Content-Type': 'application/octet-stream',
  'Content-Disposition': 'attachment',
  'X-Content-Type-Options': 'nosniff',
};
/** A repository may have many changed files, and the user chose it, so too much is no breach. */
const GIT_CALL = { bounds: { bytes: 8 * MIB, values: 250_000 }, mayExceed: true };

interface GitQuery {
  path: string;
  ref?: string;
  resume?: boolean;
  /** For readers, who see nothing of what runs. */
  keptOnly?: boolean;
}

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

/** Reads files, git changes, skills and hooks in conversations' folders through their agent servers. */
@Injectable()
export class ConversationWorkspaceService {
  constructor(
    private readonly actions: ConversationActionsService,
    private readonly http: AgentServerHttp,
    private readonly lists: FileLists,
    private readonly inputs: AgentInputsReader,
    private readonly conversations: ConversationRepository,
    private readonly kept: KeptChangesRepository,
  ) {}

  /**
   * Streams a file, absolute or below the conversation's folder: a text as a JSON string unless `asBytes`, anything
   * else as bytes; empty when it does not exist.
   * @throws DomainError too_large for a text beyond one string; others as `ConversationActionsService.read`
   */
  async file(userId: string, id: string, file: string, asBytes: boolean): Promise<Download> {
    return this.actions.read(userId, id, async (target, { working_dir: folder }) => {
      try {
        const { body, bytes } = await this.http.open(target, '/api/file/download', {
          query: { path: path.posix.resolve('/', folder, file) },
          timeoutMs: FILE_TIMEOUT_MS,
        });
        if (bytes !== null && bytes > MAX_FILE_BYTES) {
          body.destroy();
          throw fileTooLarge(bytes, target.sandboxId);
        }
        // Whatever length was announced: of a packed answer it is none.
        const bounded = pipeline(body, bytesAtMost(MAX_FILE_BYTES), () => undefined);
        if (asBytes) {
          return { headers: BYTES, content: bounded };
        }
        const { isText: isString, content } = await lookInto(bounded);
        if (!isString) {
          return { headers: BYTES, content };
        }
        const text = new JsonStringStream(MAX_FILE_BYTES);
        // Later failures break the text off, which its reader sees.
        return { headers: TEXT, content: pipeline(content, text, () => undefined) };
      } catch (error) {
        if (error instanceof AgentServerError && error.status === 404) {
          return asBytes
            ? { headers: BYTES, content: Readable.from([]) }
            : { headers: TEXT, content: Readable.from(['""']) };
        }
        throw error;
      }
    });
  }

  /**
   * Changes as the agent server reports them, or else as they were kept. With `resume`, a paused sandbox, or one that has
   * failed, runs meanwhile; unless that is said, only where nothing is kept. Throws as `file`.
   */
  async changes(userId: string, id: string, query: GitQuery): Promise<unknown> {
    return this.liveOrKept(userId, id, '/api/git/changes', query, keptChangesBelow);
  }

  /** Both sides of one file. Resumes and throws like `changes`. */
  async diff(userId: string, id: string, query: GitQuery): Promise<unknown> {
    return this.liveOrKept(userId, id, '/api/git/diff', query, keptDiffOf);
  }

  private async liveOrKept(
    userId: string,
    id: string,
    route: string,
    query: GitQuery,
    select: (kept: Kept) => unknown,
  ): Promise<unknown> {
    if (query.keptOnly === true) {
      const found = query.ref === undefined ? await this.findKept(userId, id, query.path, select) : undefined;
      return requireKept(found);
    }
    try {
      if (query.resume === true) {
        await this.actions.wake(userId, id, 'its changes');
      }
      return await this.git(userId, id, route, query);
    } catch (error) {
      if (!(error instanceof DomainError && error.code === 'sandbox_not_running')) {
        throw error;
      }
      // What is kept was compared with nothing but the start of the branch.
      const found = query.ref === undefined ? await this.findKept(userId, id, query.path, select) : undefined;
      if (found !== undefined) {
        return found;
      }
      if (query.resume === undefined && (await this.actions.wake(userId, id, 'its changes'))) {
        return await this.git(userId, id, route, query);
      }
      throw error;
    }
  }

  private async findKept<T>(
    userId: string,
    givenId: string,
    name: string,
    select: (kept: Kept) => T | undefined,
  ): Promise<T | undefined> {
    const id = parseHexId(givenId);
    const [conversation, kept] =
      id === null
        ? [null, null]
        : await Promise.all([this.conversations.find(userId, id), this.kept.findOf(userId, id)]);
    if (conversation === null || kept === null) {
      return undefined;
    }
    return select(keptAt(kept, conversation.workingDir, name));
  }

  private async git(
    userId: string,
    id: string,
    route: string,
    { path: name, ref }: GitQuery,
  ): Promise<unknown> {
    return this.actions.read(userId, id, async (target, { working_dir: base }) =>
      this.http.json(target, route, {
        query: { path: path.posix.resolve('/', base, name), ref },
        ...GIT_CALL,
      }),
    );
  }

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

  /** Reads the file of hooks as it is now. Throws as `skills`. */
  async hooks(userId: string, id: string): Promise<HookEvent[]> {
    const answer = await this.readIfRunning(userId, id, '/api/hooks', (folder) => ({ project_dir: folder }));
    return toHookEvents(jsonAt(answer, 'hook_config'));
  }

  /**
   * Up to 2,000 sorted relative paths below a folder, which is absolute or below the conversation's folder; none if it
   * does not exist. Of a sandbox that does not run those that were kept, with their time; with `keptOnly` of any.
   * @throws DomainError as `ConversationActionsService.read`, where nothing was kept
   */
  async files(
    userId: string,
    id: string,
    folder: string,
    keptOnly = false,
  ): Promise<{ paths: string[]; asOf: Date | null }> {
    if (keptOnly) {
      return requireKept(await this.findKept(userId, id, folder, keptPathsBelow));
    }
    try {
      const paths = await this.actions.read(userId, id, async (target, { working_dir: base }) =>
        this.lists.below(target, path.posix.resolve('/', base, folder)),
      );
      return { paths, asOf: null };
    } catch (error) {
      const isAway = error instanceof DomainError && error.code === 'sandbox_not_running';
      const found = isAway ? await this.findKept(userId, id, folder, keptPathsBelow) : undefined;
      if (found === undefined) {
        throw error;
      }
      return found;
    }
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

/** Reads enough to tell whether a file is a text, and returns all of it. Throws AgentServerError. */
async function lookInto(body: Readable): Promise<{ isText: boolean; content: Readable }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    const read: AsyncIterable<Uint8Array> = body.iterator({ destroyOnReturn: false });
    for await (const chunk of read) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= BEGINNING_BYTES) {
        const beginning = Buffer.concat(chunks);
        body.unshift(beginning);
        return { isText: isText(beginning, false), content: body };
      }
    }
  } catch (error) {
    throw new AgentServerError(null, 'it broke off within a file', { cause: error });
  }
  const whole = Buffer.concat(chunks);
  return { isText: isText(whole, true), content: Readable.from([whole]) };
}

/** Passes bytes on, and breaks off beyond the bound. */
function bytesAtMost(most: number): Transform {
  let size = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      done(size > most ? new Error(`it has more than ${most} bytes`) : null, chunk);
    },
  });
}

/** @throws DomainError conflict */
function requireKept<T>(kept: T | undefined): T {
  if (kept === undefined) {
    throw new DomainError(
      'conflict',
      'Readers see what is kept when a run ends or the sandbox is stopped; nothing is kept of this yet.',
    );
  }
  return kept;
}

export function fileTooLarge(bytes: number, sandboxId: string): DomainError {
  return new DomainError(
    'payload_too_large',
    `The file has ${Math.ceil(bytes / MIB)} MiB; at most ${MAX_FILE_BYTES / MIB} MiB can be read as a JSON string. Download it with the sandbox's session_api_key: GET /api/v1/sandboxes/${sandboxId}/agent-server/api/file/download?path=…`,
  );
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
