import { Injectable } from '@nestjs/common';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import type { JsonObject } from '@slipway/common/json-access.js';
import { UsersService } from '../../../auth/users.service.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { parseHexId, toHexId } from '@slipway/common/identifiers.js';
import { AppConfig } from '../../../config/app-config.js';
import { ServiceAddress } from '../../../config/service-address.js';
import { isRemote, type ToolServer } from '@slipway/tool-servers/tool-servers.js';
import { SandboxCallback } from '../../sandboxes/sandbox-callback.js';
import { ConversationQueries } from '../conversation.queries.js';
import { StartTaskRepository } from '../start-task.repository.js';

export const TOOL_SERVER_PATH = '/mcp';

/** Names the conversation whose agent calls with a user's key: the caller may then do no more than that agent. */
export const CONVERSATION_HEADER = 'X-Slipway-Conversation';

/** Headers that a key may stand in. */
const KEY_HEADERS = ['authorization', 'x-session-api-key', 'x-access-token'];

const KEY = /^slwc_([0-9a-f]{32})_([\w-]{43})$/;

interface CallingAgent {
  userId: string;
  conversationId: string;
  sandboxId: string;
}

/**
 * Gives an agent the key of its conversation for our own tool server, whatever key the settings have for it. The key is
 * derived, not stored: it opens nothing else, and nothing once the conversation is deleted or while its sandbox rests.
 */
@Injectable()
export class OwnToolServer {
  constructor(
    private readonly address: ServiceAddress,
    private readonly callback: SandboxCallback,
    private readonly config: AppConfig,
    private readonly cipher: SecretCipher,
    private readonly starts: StartTaskRepository,
    private readonly conversations: ConversationQueries,
    private readonly users: UsersService,
  ) {}

  /** Derives the key from a start's id, which is never used again; the id of a deleted conversation may be. */
  keyOf(startId: string): string {
    return `slwc_${toHexId(startId)}_${this.cipher.derive(purposeOf(startId))}`;
  }

  /** Returns null for any other key. A forged one costs no query. */
  async callerOf(key: string): Promise<CallingAgent | null> {
    const [, hex = '', code = ''] = KEY.exec(key) ?? [];
    const startId = parseHexId(hex);
    if (startId === null || !this.cipher.hasDerived(purposeOf(startId), code)) {
      return null;
    }
    const start = await this.starts.byId(startId);
    const row = start && (await this.conversations.find(start.userId, start.appConversationId));
    return row?.sandbox_status === 'RUNNING' && (await this.users.mayAct(row.user_id))
      ? { userId: row.user_id, conversationId: row.id, sandboxId: row.sandbox_id }
      : null;
  }

  /** Changes the servers that are ours, and no others. */
  calledFrom(startId: string | null, servers: readonly ToolServer[] | null): ToolServer[] | null {
    const apiKey = startId && this.keyOf(startId);
    const withKey = (server: ToolServer): ToolServer => {
      const url = isRemote(server) ? new URL(server.url) : null;
      return isRemote(server) && url !== null && this.isOwn(url)
        ? { ...server, url: `${url.origin}${url.pathname}`, apiKey, details: withoutKeys(server.details) }
        : server;
    };
    return servers?.map(withKey) ?? null;
  }

  private isOwn({ hostname, origin, port, pathname }: URL): boolean {
    const isPublic = this.address.isOwn(origin);
    const isServed = isLoopbackHost(hostname) && port === String(this.address.port);
    const isInside =
      origin === new URL(this.callback.webhooksUrl).origin ||
      this.config.http.allowedHosts.includes(hostname);
    const [path, base] = [pathname, new URL(this.address.publicUrl).pathname].map((each) =>
      each.replace(/\/$/, ''),
    );
    // Beside the path of PUBLIC_URL, its host may be that of others.
    const isThere =
      path === `${base}${TOOL_SERVER_PATH}` || (path === TOOL_SERVER_PATH && (isServed || !isPublic));
    return isThere && (isPublic || isServed || isInside);
  }
}

function purposeOf(startId: string): string {
  return `key of the conversation that was started by ${startId}`;
}

function withoutKeys({ headers, ...details }: JsonObject): JsonObject {
  const kept = Object.entries(Object(headers)).filter(([name]) => !KEY_HEADERS.includes(name.toLowerCase()));
  return { ...details, headers: Object.fromEntries(kept) };
}
