import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { may } from '../../../auth/access.js';
import { AccessChanges } from '../../../auth/access-changes.js';
import type { AuthUser } from '../../../auth/auth.decorators.js';
import { UserRepository } from '../../../auth/user.repository.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { ACCESS_CHANNEL, AccessedConversationRepository } from '../accessed-conversation.repository.js';

/** Who reads which conversation, for longer than one look at it. */
export interface Reading {
  reader: AuthUser;
  conversationId: string;
}

type Listener = (isAffected: (reading: Reading) => boolean) => void;

/** Tells that it may have ended that some read what is shared, or is of their key, and says who may still. */
@Injectable()
export class ReadAccess implements OnApplicationBootstrap {
  private readonly listeners: Listener[] = [];

  constructor(
    private readonly conversations: AccessedConversationRepository,
    private readonly users: UserRepository,
    private readonly changes: AccessChanges,
    private readonly notifications: DatabaseNotifications,
  ) {}

  onApplicationBootstrap(): void {
    // Null: the change of any user, or of any conversation, may have been missed.
    this.changes.listen((userId) => this.tell(({ reader }) => userId === null || reader.id === userId));
    this.notifications.listen(
      ACCESS_CHANNEL,
      (id) => this.tell(({ conversationId }) => conversationId === id),
      () => this.tell(() => true),
    );
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  /** Those that may be no longer. Keys, users and conversations that have ended are found elsewhere. */
  async ended<T extends Reading>(readings: readonly T[]): Promise<T[]> {
    if (readings.length === 0) {
      return [];
    }
    const [rows, administrators] = await Promise.all([
      this.conversations.findEach([...new Set(readings.map((each) => each.conversationId))]),
      this.users.administrators(readings.flatMap(({ reader }) => (reader.isAdmin ? reader.id : []))),
    ]);
    return readings.filter(({ reader, conversationId }) => {
      const row = rows.get(conversationId);
      const isAdmin = reader.isAdmin && administrators.has(reader.id);
      return row !== undefined && !may({ ...reader, isAdmin }, 'read', row);
    });
  }

  private tell(isAffected: (reading: Reading) => boolean): void {
    this.listeners.forEach((listener) => listener(isAffected));
  }
}
