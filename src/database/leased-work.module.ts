@Module({ imports: [DatabaseNotificationsModule], providers: [LeasedWork], exports: [LeasedWork] })
export class LeasedWorkModule {}
