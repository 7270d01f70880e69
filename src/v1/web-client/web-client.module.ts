import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { WebClientController } from './web-client.controller.js';

@Module({
  imports: [GitProvidersModule],
  controllers: [WebClientController],
})
export class WebClientModule {}
