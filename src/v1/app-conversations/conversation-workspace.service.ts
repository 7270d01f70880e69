import path from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { JsonStringStream } from '../../common/json-string.stream.js';
import { AgentServerError, AgentServerHttp } from '../agent-servers/agent-server.http.js';
import { ConversationActionsService } from './conversation-actions.service.js';

const MIB = 1024 * 1024;
/** Programs cannot hold much longer strings; more than that is for the download from the agent server. */
const MAX_FILE_BYTES = 256 * MIB;
/** From the first byte to the last one: clients that read slowly are dropped by whoever sends to them. */
const FILE_TIMEOUT_MS = 30 * 60_000;
/** A repository may have many changed files. What exceeds this is no breach, since the user chose the repository. */
const GIT_CALL = { bounds: { bytes: 8 * MIB, values: 250_000 }, mayExceed: true };

/** Reads files and git changes in the folders that conversations work in, through their agent servers. */
@Injectable()
export class ConversationWorkspaceService {
  constructor(
    private readonly actions: ConversationActionsService,
    private readonly http: AgentServerHttp,
  ) {}

  /**
   * The text of a file as a JSON string, which is sent while it is read; empty when there is no such file.
   *
   * @param file below the conversation's folder, or absolute
   * @throws DomainError too_large when the file is too large for one string; others as `ConversationActionsService.read`
   */
  async file(userId: string, id: string, file: string): Promise<Readable> {
    return this.actions.read(userId, id, async (target, { working_dir: folder }) => {
      try {
        const { body, bytes } = await this.http.open(target, '/api/file/download', {
          query: { path: path.posix.resolve('/', folder, file) },
          timeoutMs: FILE_TIMEOUT_MS,
        });
        if (bytes !== null && bytes > MAX_FILE_BYTES) {
          body.destroy();
          throw tooLarge(bytes, target.sandboxId);
        }
        const text = new JsonStringStream(MAX_FILE_BYTES);
        // What goes wrong from now on ends the text, and whoever reads it sees that.
        return pipeline(body, text, () => undefined);
      } catch (error) {
        if (error instanceof AgentServerError && error.status === 404) {
          return Readable.from(['""']);
        }
        throw error;
      }
    });
  }

  /** What changed below a folder, as the agent server reports it. Throws like `file`. */
  async changes(userId: string, id: string, folder: string, ref: string | undefined): Promise<unknown> {
    return this.actions.read(userId, id, async (target, { working_dir: base }) =>
      this.http.json(target, '/api/git/changes', {
        query: { path: path.posix.resolve('/', base, folder), ref },
        ...GIT_CALL,
      }),
    );
  }

  /** Both sides of one file, as the agent server reports them. Throws like `file`. */
  async diff(userId: string, id: string, file: string, ref: string | undefined): Promise<unknown> {
    return this.actions.read(userId, id, async (target, { working_dir: base }) =>
      this.http.json(target, '/api/git/diff', {
        query: { path: path.posix.resolve('/', base, file), ref },
        ...GIT_CALL,
      }),
    );
  }
}

function tooLarge(bytes: number, sandboxId: string): DomainError {
  return new DomainError(
    'too_large',
    'payload_too_large',
    `The file has ${Math.ceil(bytes / MIB)} MiB; at most ${MAX_FILE_BYTES / MIB} MiB can be read as a JSON string. Download it with the sandbox's session_api_key: GET /api/v1/sandboxes/${sandboxId}/agent-server/api/file/download?path=…`,
  );
}
