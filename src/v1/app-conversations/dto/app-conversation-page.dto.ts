import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../../common/openapi/next-page-id.decorator.js';
import { AppConversationDto } from './app-conversation.dto.js';

/** A page of conversations. */
@ApiSchema({ name: 'AppConversationPage' })
export class AppConversationPageDto {
  @ApiProperty({ type: [AppConversationDto] })
  items: AppConversationDto[];

  @NextPageId()
  next_page_id: string | null;
}
