import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Metrics } from '../../metrics/metrics.js';
import type { DiskSpace } from './backends/disk-space.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { BackendSweeper } from './lifecycle/backend-sweeper.js';
import { SandboxQueries } from './sandbox.queries.js';

/** Offers how many sandboxes there are, and how full their disk is. */
@Injectable()
export class SandboxMetrics implements OnModuleInit {
  constructor(
    private readonly queries: SandboxQueries,
    private readonly metrics: Metrics,
    private readonly backend: SandboxBackend,
    private readonly sweeper: BackendSweeper,
  ) {}

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_sandboxes',
      help: 'Sandboxes of all hosts by status',
      label: 'status',
      read: () => this.queries.countByStatus(),
    });
    this.metrics.addGauge({
      name: 'slipway_sandbox_disk_bytes',
      help: 'The disk that the sandboxes of this host lie on',
      label: 'state',
      read: async () => bytesByState(await this.backend.disk()),
    });
    this.metrics.addGauge({
      name: 'slipway_sandbox_leftovers',
      help: 'Removed sandboxes of this host of which some files cannot be removed',
      label: 'backend',
      read: async () => {
        const { leftovers } = this.sweeper;
        return new Map(leftovers === null ? [] : [[this.backend.kind, leftovers]]);
      },
    });
  }
}

/** Empty when nothing is known: a zero would look like a full disk. */
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
