import { Module } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { AppConfig } from '../../config/app-config.js';
import { loadSandboxSpecs, SandboxSpecs } from './sandbox-specs.js';
import { SandboxSpecsController } from './sandbox-specs.controller.js';

@Module({
  controllers: [SandboxSpecsController],
  providers: [
    {
      provide: SandboxSpecs,
      inject: [AppConfig, Clock],
      useFactory: async ({ sandboxes }: AppConfig, clock: Clock): Promise<SandboxSpecs> =>
        new SandboxSpecs(await loadSandboxSpecs(sandboxes.specsFile, new Date(clock.now()))),
    },
  ],
  exports: [SandboxSpecs],
})
export class SandboxSpecsModule {}
