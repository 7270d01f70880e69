import { ApiProperty } from '@nestjs/swagger';

/** Answer to a change of custom secrets. */
export class SecretMessageDto {
  @ApiProperty({ description: 'What was done.', example: 'Secret stored' })
  message: string;
}
