import path from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { isText, JsonStringStream } from '../../common/json-string.stream.js';
import { AgentServerError, AgentServerHttp } from '../agent-servers/agent-server.http.js';
import type { Download } from './api/download.sender.js';
import { ConversationActionsService } from './conversation-actions.service.js';

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
}

/** Reads files and git changes in conversations' folders through their agent servers. */
@Injectable()
export class ConversationWorkspaceService {
  constructor(
    private readonly actions: ConversationActionsService,
    private readonly http: AgentServerHttp,
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
        if (asBytes) {
          return { headers: BYTES, content: body };
        }
        const { isText: isString, content } = await lookInto(body);
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

  /** Changes as the agent server reports them. With `resume`, a paused sandbox runs meanwhile. Throws as `file`. */
  async changes(
    userId: string,
    id: string,
    { path: folder, ref, resume = true }: GitQuery,
  ): Promise<unknown> {
    if (resume) {
      await this.actions.wake(userId, id);
    }
    return this.actions.read(userId, id, async (target, { working_dir: base }) =>
      this.http.json(target, '/api/git/changes', {
        query: { path: path.posix.resolve('/', base, folder), ref },
        ...GIT_CALL,
      }),
    );
  }

  /** Both sides of one file. Resumes and throws like `changes`. */
  async diff(userId: string, id: string, { path: file, ref, resume = true }: GitQuery): Promise<unknown> {
    if (resume) {
      await this.actions.wake(userId, id);
    }
    return this.actions.read(userId, id, async (target, { working_dir: base }) =>
      this.http.json(target, '/api/git/diff', {
        query: { path: path.posix.resolve('/', base, file), ref },
        ...GIT_CALL,
      }),
    );
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

export function fileTooLarge(bytes: number, sandboxId: string): DomainError {
  return new DomainError(
    'too_large',
    'payload_too_large',
    `The file has ${Math.ceil(bytes / MIB)} MiB; at most ${MAX_FILE_BYTES / MIB} MiB can be read as a JSON string. Download it with the sandbox's session_api_key: GET /api/v1/sandboxes/${sandboxId}/agent-server/api/file/download?path=…`,
  );
}
