import { Injectable } from '@nestjs/common';
import { Column, DataSource, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { Sandbox } from '../../sandboxes/sandbox.entity.js';

/** What stands for a credential in one sandbox. The value is where its user keeps it. */
@Entity('sandbox_placeholders')
@Index('sandbox_placeholders_placeholder_key', ['placeholder'], { unique: true, where: 'NOT is_chosen' })
export class SandboxPlaceholder {
  @PrimaryColumn('text') sandboxId: string;

  /** Where the value is found: see `CredentialSource`. */
  @PrimaryColumn('text') source: string;
  @Column('text') placeholder: string;

  /** By the user, who has it in all sandboxes. */
  @Column('boolean', { default: false }) isChosen: boolean;

  /** Of repositories, towards which a git token is put in. */
  @Column('jsonb') addresses: string[];

  @ManyToOne(() => Sandbox, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'sandbox_id' })
  sandbox?: Sandbox;
}

/** A conversation names a few; the newest of many starts in one sandbox would find no room. */
const MAX_ADDRESSES = 500;

/** In one order, so that two starts never wait for each other. */
const KEEP = `
  INSERT INTO sandbox_placeholders AS kept (sandbox_id, source, placeholder, addresses, is_chosen)
  SELECT $1, source, placeholder, addresses, "isChosen"
  FROM jsonb_to_recordset($2::jsonb) AS given (source text, placeholder text, addresses jsonb, "isChosen" boolean)
  ORDER BY source
  ON CONFLICT (sandbox_id, source) DO UPDATE SET addresses = (
    SELECT coalesce(jsonb_agg(address), '[]') FROM (
      SELECT DISTINCT address FROM jsonb_array_elements(kept.addresses || excluded.addresses) address
      LIMIT ${MAX_ADDRESSES}) known)
  RETURNING source, placeholder`;

const FORGET_TOOLS = `
  DELETE FROM sandbox_placeholders
  WHERE sandbox_id = $1 AND source::jsonb ->> 'kind' = 'tool' AND source <> ALL ($2::text[])`;

const FORGET_SETUP = `
  DELETE FROM sandbox_placeholders WHERE sandbox_id = $1 AND source::jsonb ->> 'phase' = 'setup'`;

const OF_REPOSITORIES = `
  SELECT source::jsonb ->> 'provider' AS provider, addresses FROM sandbox_placeholders
  WHERE sandbox_id = $1 AND source::jsonb ->> 'kind' = 'git'`;

export type KeptPlaceholder = Pick<SandboxPlaceholder, 'source' | 'placeholder' | 'addresses'>;
export type WantedPlaceholder = Pick<SandboxPlaceholder, 'source' | 'placeholder' | 'isChosen'> & {
  addresses: readonly string[];
};

@Injectable()
export class PlaceholderRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** The placeholder of each source, which is the given one unless there is another; adds to its addresses. @param wanted of a source each */
  async keep(
    sandboxId: string,
    wanted: readonly WantedPlaceholder[],
  ): Promise<Pick<SandboxPlaceholder, 'source' | 'placeholder'>[]> {
    return await this.dataSource.query(KEEP, [sandboxId, JSON.stringify(wanted)]);
  }

  /** Removes those of tool servers that its user has no more: nothing is put in for them. */
  async forgetTools(sandboxId: string, sources: readonly string[]): Promise<void> {
    await this.dataSource.query(FORGET_TOOLS, [sandboxId, sources]);
  }

  /** Removes those of secrets that a setup alone had. @returns whether there were some */
  async forgetSetup(sandboxId: string): Promise<boolean> {
    const [, removed] = await this.dataSource.query<[unknown, number]>(FORGET_SETUP, [sandboxId]);
    return removed > 0;
  }

  /** Those that git tokens of the sandbox are for. */
  async ofRepositories(sandboxId: string): Promise<{ provider: ProviderType; addresses: string[] }[]> {
    return await this.dataSource.query(OF_REPOSITORIES, [sandboxId]);
  }

  async list(sandboxId: string): Promise<SandboxPlaceholder[]> {
    return await this.dataSource.manager.findBy(SandboxPlaceholder, { sandboxId });
  }
}
