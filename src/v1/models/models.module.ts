import { Module } from '@nestjs/common';
import { AppConversationsModule } from '../app-conversations/app-conversations.module.js';
import { ModelsController } from './models.controller.js';
import { ModelsService } from './models.service.js';

@Module({
  imports: [AppConversationsModule],
  controllers: [ModelsController],
  providers: [ModelsService],
})
export class ModelsModule {}
