import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AppConfig } from '../../config/app-config.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { SandboxSpecsModule } from '../sandbox-specs/sandbox-specs.module.js';
import { BackendReadiness } from './backend-readiness.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { createSandboxBackend } from './create-sandbox-backend.js';
import { HostIdentity } from './host-identity.js';
import { loadHostId } from './load-host-id.js';
import { RunningSandboxes } from './running-sandboxes.js';
import { SandboxActivity } from './sandbox-activity.js';
import { SandboxCreation } from './sandbox-creation.js';
import { SandboxHolds } from './sandbox-holds.js';
import { SandboxHost } from './sandbox-host.entity.js';
import { SandboxIdleness } from './sandbox-idleness.js';
import { SandboxKeys } from './sandbox-keys.js';
import { SandboxKicks } from './sandbox-kicks.js';
import { SandboxListeners } from './sandbox-listeners.js';
import { SandboxPlaces } from './sandbox-places.js';
import { SandboxResume } from './sandbox-resume.js';
import { Sandbox } from './sandbox.entity.js';
import { SandboxStore } from './sandbox.store.js';
import { StoredSandboxKeys } from './stored.sandbox-keys.js';
import { UserSeparation } from './user-separation.js';

/** Sandboxes: rows that say what should be, and workers that make it so. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Sandbox, SandboxHost]),
    AgentServersModule,
    SandboxSpecsModule,
    IdempotencyModule,
  ],
  providers: [
    {
      provide: HostIdentity,
      inject: [AppConfig],
      useFactory: async ({ sandboxes, dataDir }: AppConfig): Promise<HostIdentity> =>
        new HostIdentity(sandboxes.hostId ?? (await loadHostId(dataDir))),
    },
    { provide: SandboxBackend, inject: [AppConfig], useFactory: createSandboxBackend },
    { provide: SandboxKeys, useClass: StoredSandboxKeys },
    BackendReadiness,
    RunningSandboxes,
    SandboxActivity,
    SandboxCreation,
    SandboxHolds,
    SandboxIdleness,
    SandboxKicks,
    SandboxListeners,
    SandboxPlaces,
    SandboxResume,
    SandboxStore,
    UserSeparation,
  ],
  exports: [
    HostIdentity,
    RunningSandboxes,
    SandboxActivity,
    SandboxCreation,
    SandboxHolds,
    SandboxKeys,
    SandboxListeners,
    SandboxPlaces,
    SandboxResume,
  ],
})
export class SandboxesModule {}
