import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { countRows, Metrics } from '../../metrics/metrics.js';
import type { DiskSpace } from './backends/disk-space.js';
import { SandboxBackend } from './backends/sandbox-backend.js';

const COUNT = 'SELECT status AS value, count(*)::int AS count FROM sandboxes GROUP BY status';

/** Tells how many sandboxes there are, and how full their disk is. */
@Injectable()
export class SandboxMetrics implements OnModuleInit {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly metrics: Metrics,
    private readonly backend: SandboxBackend,
  ) {}

  onModuleInit(): void {
    this.metrics.offer({
      name: 'slipway_sandboxes',
      help: 'Sandboxes of all hosts by status',
      label: 'status',
      read: () => countRows(this.dataSource, COUNT),
    });
    this.metrics.offer({
      name: 'slipway_sandbox_disk_bytes',
      help: 'The disk that the sandboxes of this host lie on',
      label: 'state',
      read: async () => bytesByState(await this.backend.disk()),
    });
  }
}

/** Nothing where nothing is known: a zero would look like a full disk. */
function bytesByState(space: DiskSpace | null): Map<string, number> {
  return new Map(
    space === null
      ? []
      : [
          ['free', space.freeBytes],
          ['used', space.totalBytes - space.freeBytes],
        ],
  );
}
