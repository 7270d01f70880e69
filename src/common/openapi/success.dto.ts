import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** It was done. */
@ApiSchema({ name: 'Success' })
export class SuccessDto {
  @ApiProperty({ example: true })
  success: boolean;
}

/** The answer of actions. */
export const SUCCESS: SuccessDto = { success: true };
