import path from 'node:path';
import { Injectable } from '@nestjs/common';
import { Column, DataSource, Entity, Index, JoinColumn, OneToOne, PrimaryColumn, Repository } from 'typeorm';
import type { GitChange, GitDiff } from '@slipway/agent-protocol/git.js';
import { parseJson } from '@slipway/common/json-access.js';
import { OwnedRow } from '../../../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '@slipway/common/secret-cipher.js';
import { AppConversation } from '../conversation.entity.js';

/** What had changed in a conversation's folder when its run ended or its sandbox stopped. */
@Entity('kept_changes')
@Index('kept_changes_user_id_as_of_idx', ['userId', 'asOf'])
export class KeptChanges extends OwnedRow {
  @PrimaryColumn('uuid') conversationId: string;

  @OneToOne(() => AppConversation, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'conversation_id' })
  conversation?: AppConversation;

  @Column('timestamptz') asOf: Date;

  /** Encrypted JSON: agents write secrets into files, too. */
  @Column('text') files: string;

  /** Encrypted JSON: paths of all files, relative to the folder; null where they were not told. */
  @Column('text', { nullable: true }) paths: string | null;
}

/** A file without a diff was too large, or one too many. */
export interface KeptFile extends GitChange {
  diff?: GitDiff;
}

export interface KeptCopy {
  files: readonly KeptFile[];
  /** Paths of all files, relative to the folder; null when they were not sent. */
  paths: readonly string[] | null;
}

function binding(column: 'files' | 'paths', conversationId: string): string {
  return `kept_changes.${column}:${conversationId}`;
}

export const KEPT_CHANGES_ENCRYPTED_COLUMNS = (['files', 'paths'] as const).map(
  (column): EncryptedColumn => ({
    table: 'kept_changes',
    column,
    keyColumns: ['conversation_id'],
    binding: ({ conversation_id: id = '' }) => binding(column, id),
    // Each may have three megabytes.
    batch: 10,
  }),
);

/** Conversations of a user whose changes are kept. */
const MAX_OF_USER = 100;

const KEEP = `
  INSERT INTO kept_changes (conversation_id, user_id, as_of, files, paths) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (conversation_id) DO UPDATE SET as_of = EXCLUDED.as_of, files = EXCLUDED.files, paths = EXCLUDED.paths
  WHERE kept_changes.as_of <= EXCLUDED.as_of`;

const FORGET_OLDEST = `
  DELETE FROM kept_changes WHERE user_id = $1 AND conversation_id IN (
    SELECT conversation_id FROM kept_changes WHERE user_id = $1 ORDER BY as_of DESC OFFSET ${MAX_OF_USER})`;

@Injectable()
export class KeptChangesRepository extends Repository<KeptChanges> {
  constructor(
    dataSource: DataSource,
    private readonly cipher: SecretCipher,
  ) {
    super(KeptChanges, dataSource.manager);
  }

  /** Replaces an older copy; of a user's conversations the newest copies stay. */
  async keep(conversationId: string, asOf: Date, { files, paths }: KeptCopy): Promise<void> {
    const [changed, all] = [
      this.cipher.encrypt(JSON.stringify(files), binding('files', conversationId)),
      paths && this.cipher.encrypt(JSON.stringify(paths), binding('paths', conversationId)),
    ];
    await this.manager.transaction(async (manager) => {
      const found = await manager.findOne(AppConversation, {
        select: { id: true, userId: true },
        where: { id: conversationId },
        // It may be removed meanwhile.
        lock: { mode: 'for_key_share' },
      });
      if (found !== null) {
        await manager.query(KEEP, [conversationId, found.userId, asOf, changed, all]);
        await manager.query(FORGET_OLDEST, [found.userId]);
      }
    });
  }

  /** @throws SecretDecryptionError */
  async findOf(userId: string, conversationId: string): Promise<(KeptCopy & { asOf: Date }) | null> {
    const row = await this.findOneBy({ conversationId, userId });
    const decrypted = (column: 'files' | 'paths', text: string): unknown =>
      parseJson(this.cipher.decrypt(text, binding(column, conversationId)));
    return (
      row && {
        asOf: row.asOf,
        files: decrypted('files', row.files) as KeptFile[],
        paths: row.paths === null ? null : (decrypted('paths', row.paths) as string[]),
      }
    );
  }
}

/** A copy as a request asks for it. */
export interface Kept {
  as_of: string;
  /** What was asked for; as those of the files, absolute. */
  place: string;
  files: readonly (KeptFile & { place: string })[];
  folder: string;
  paths: readonly string[] | null;
}

export function keptChangesBelow({ as_of, place, files }: Kept): unknown {
  return files.flatMap(({ place: file, status }) => {
    const below = path.posix.relative(place, file);
    return below === '' || below.startsWith('../') ? [] : [{ status, path: below, as_of }];
  });
}

/** Undefined: that file was not kept. */
export function keptDiffOf({ as_of, place, files }: Kept): unknown {
  const diff = files.find((file) => file.place === place)?.diff;
  return diff && { ...diff, as_of };
}

/** Undefined: no list was kept, or not of that folder. */
export function keptPathsBelow({
  as_of,
  place,
  folder,
  paths,
}: Kept): { paths: string[]; asOf: Date } | undefined {
  const below = path.posix.relative(folder, place);
  const start = below === '' ? '' : `${below}/`;
  return paths === null || /^\.\.(\/|$)/.test(below)
    ? undefined
    : {
        paths: paths.filter((name) => name.startsWith(start)).map((name) => name.slice(start.length)),
        asOf: new Date(as_of),
      };
}

/** @param name absolute, or below the folder */
export function keptAt(
  { asOf, files, paths }: KeptCopy & { asOf: Date },
  workingDir: string,
  name: string,
): Kept {
  const folder = path.posix.resolve('/', workingDir);
  return {
    as_of: asOf.toISOString(),
    place: path.posix.resolve(folder, name),
    files: files.map((file) => ({ ...file, place: path.posix.join(folder, file.path) })),
    folder,
    paths,
  };
}
