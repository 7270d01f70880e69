import path from 'node:path';
import { Injectable } from '@nestjs/common';
import { AgentServerError, AgentServerHttp } from '../agent-servers/agent-server.http.js';
import { ConversationActionsService } from './conversation-actions.service.js';

/** Reads files and git changes in the folders that conversations work in, through their agent servers. */
@Injectable()
export class ConversationWorkspaceService {
  constructor(
    private readonly actions: ConversationActionsService,
    private readonly http: AgentServerHttp,
  ) {}

  /**
   * The text of a file; empty when there is no such file.
   *
   * @param file below the conversation's folder, or absolute
   * @throws DomainError as `ConversationActionsService.read` does
   */
  async file(userId: string, id: string, file: string): Promise<string> {
    return this.actions.read(userId, id, async (target, { working_dir: folder }) => {
      try {
        return await this.http.text(target, '/api/file/download', {
          query: { path: path.posix.resolve('/', folder, file) },
        });
      } catch (error) {
        if (error instanceof AgentServerError && error.status === 404) {
          return '';
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
      }),
    );
  }

  /** Both sides of one file, as the agent server reports them. Throws like `file`. */
  async diff(userId: string, id: string, file: string, ref: string | undefined): Promise<unknown> {
    return this.actions.read(userId, id, async (target, { working_dir: base }) =>
      this.http.json(target, '/api/git/diff', { query: { path: path.posix.resolve('/', base, file), ref } }),
    );
  }
}
