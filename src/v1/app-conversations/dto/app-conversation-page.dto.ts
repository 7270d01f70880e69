import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { AppConversationDto } from './app-conversation.dto.js';

/** A page of conversations. */
@ApiSchema({ name: 'AppConversationPage' })
export class AppConversationPageDto {
  @ApiProperty({ type: [AppConversationDto] })
  items: AppConversationDto[];

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Pass it as `page_id` for the next page.',
    example: null,
  })
  next_page_id: string | null;
}
