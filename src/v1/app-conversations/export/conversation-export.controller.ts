import { Controller, Get, Param, StreamableFile } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { AuthUser } from '../../../auth/auth-user.js';
import { CurrentUser } from '../../../auth/current-user.decorator.js';
import { ConversationIdDto } from '../dto/conversation-id.dto.js';
import { DownloadOperation } from './conversation-export.operations.js';
import { ConversationExportService } from './conversation-export.service.js';

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/app-conversations/:id')
export class ConversationExportController {
  constructor(private readonly exports: ConversationExportService) {}

  @Get('download')
  @DownloadOperation()
  async download(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<StreamableFile> {
    return new StreamableFile(await this.exports.pack(user.id, id), {
      type: 'application/zip',
      disposition: 'attachment; filename="conversation.zip"',
    });
  }
}
