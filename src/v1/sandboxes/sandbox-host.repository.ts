import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, type EntityManager, PrimaryColumn, Repository } from 'typeorm';

@Entity('sandbox_hosts')
export class SandboxHost {
  @PrimaryColumn('text') id: string;

  /** `SANDBOX_ADDRESS`: how other hosts reach its sandboxes; null when they cannot. */
  @Column('text', { nullable: true }) address: string | null;
  @Column('timestamptz') seenAt: Date;
}

/** Unique among our advisory locks. */
const REGISTRATION_LOCK = 7_305_218_442;
/** A host that was not seen for this long serves no more. */
const LIVE_SECONDS = 20;

const FIND_OTHER = `
  SELECT id, address, ceil(extract(epoch FROM now() - seen_at))::integer AS "secondsAgo"
  FROM sandbox_hosts
  WHERE id <> $1 AND seen_at > now() - make_interval(secs => $2)
  ORDER BY seen_at DESC
  LIMIT 1`;

const HEARTBEAT = `
  INSERT INTO sandbox_hosts (id, address, seen_at) VALUES ($1, $2, now())
  ON CONFLICT (id) DO UPDATE SET address = excluded.address, seen_at = excluded.seen_at`;

export interface OtherHost {
  id: string;
  address: string | null;
  secondsAgo: number;
}

/** Which hosts serve this database. All times are the database's. */
@Injectable()
export class SandboxHostRepository {
  constructor(@InjectRepository(SandboxHost) private readonly hosts: Repository<SandboxHost>) {}

  /** Starting hosts take turns, so that the second sees the first. An error of `check` undoes the registration. */
  async register(id: string, address: string | null, check: (other: OtherHost) => void): Promise<void> {
    await this.hosts.manager.transaction(async (manager) => {
      await manager.query('SELECT pg_advisory_xact_lock($1)', [REGISTRATION_LOCK]);
      (await manager.query<OtherHost[]>(FIND_OTHER, [id, LIVE_SECONDS])).forEach(check);
      await this.heartbeat(id, address, manager);
    });
  }

  async heartbeat(
    id: string,
    address: string | null,
    manager: EntityManager = this.hosts.manager,
  ): Promise<void> {
    await manager.query(HEARTBEAT, [id, address]);
  }

  async remove(id: string): Promise<void> {
    await this.hosts.delete({ id });
  }
}

/** SQL: the host in `column` was not seen for `:seconds`. A stopped host counts at once, so give it time to return. */
export function hostIsLost(column: string): string {
  return `NOT EXISTS (SELECT 1 FROM sandbox_hosts host
    WHERE host.id = ${column} AND host.seen_at > now() - make_interval(secs => :seconds))`;
}
